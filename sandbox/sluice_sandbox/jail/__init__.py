"""What confines an isolated process: namespaces, cgroups, root file system, seccomp."""
