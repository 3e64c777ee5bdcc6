"""The confinement of an isolated process: namespaces, cgroups, root file system, seccomp."""
