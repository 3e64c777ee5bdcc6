#!/bin/bash
#
# devstack/plugin.sh
# DevStack sources this file in each phase, with the mode and the phase as arguments; README.md says what happens when.

# The functions write passwords: they are not traced, and the caller's trace setting comes back.
_XTRACE_SLUICE_PLUGIN=$(set +o | grep xtrace)
set +o xtrace

for _sluice_library in sluice sluice_conf sluice_swift sluice_cinder sluice_horizon; do
    # shellcheck source=/dev/null
    source "$SLUICE_DIR/devstack/lib/$_sluice_library"
done
unset _sluice_library

if is_service_enabled sluice; then
    case "$1 ${2:-}" in
        "stack pre-install")
            check_sluice_settings
            echo_summary "Installing what Sluice needs"
            install_sluice_packages
            ;;
        "stack install")
            echo_summary "Installing Sluice"
            install_sluice
            ;;
        "stack post-config")
            # Swift and Horizon are started after this phase, and find their configuration changed.
            echo_summary "Configuring Sluice"
            stop_sluice
            configure_sluice
            if is_service_enabled sluice-api; then
                create_sluice_accounts
            fi
            init_sluice
            if is_service_enabled swift; then
                configure_sluice_swift
            fi
            if is_service_enabled horizon; then
                install_sluice_panels
            fi
            ;;
        "stack extra")
            echo_summary "Starting Sluice"
            start_sluice
            ;;
        "stack test-config")
            if is_service_enabled tempest; then
                configure_sluice_tempest
            fi
            ;;
        "unstack "*)
            stop_sluice
            ;;
        "clean "*)
            restore_swift_confs
            remove_sluice_panels
            cleanup_sluice
            ;;
    esac
fi

$_XTRACE_SLUICE_PLUGIN
