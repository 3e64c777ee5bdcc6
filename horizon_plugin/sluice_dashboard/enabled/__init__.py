"""Files for ``openstack_dashboard/local/enabled``: what both dashboards share, and one for each of them."""
