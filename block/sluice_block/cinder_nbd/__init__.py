"""Files and NBD exports of the Cinder driver; only `cinder_api` imports Cinder."""
