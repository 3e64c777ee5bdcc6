"""Files for ``openstack_dashboard/local/enabled``: one for both dashboards, and one for each of them."""
