"""The agent of this machine: what the konnector counts for it, and the policies that it keeps."""
