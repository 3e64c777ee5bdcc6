"""``openstack sluice …``: how python-openstackclient gets to know the commands."""
