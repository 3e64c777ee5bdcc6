"""``volume``: volumes of Cinder, their tiers, snapshots, attachments, and operations on them."""
