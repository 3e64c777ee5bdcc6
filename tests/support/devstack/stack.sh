#!/bin/bash
# The parts of DevStack's stack.sh, unstack.sh and clean.sh that concern Keystone, Swift and plugins: the same
# functions of DevStack's own library in the same order, run by the user stack in the scratch root.
#
#   stack.sh stack | again | unstack | clean
#
# `again` is a second stack.sh on the same machine that leaves Swift's configuration as the plugin changed it.
# The library is DevStack's; the test differs in this: Keystone comes from another environment and listens on a port of
# its own, Swift has folders instead of a loop device, Cinder and Horizon are only folders.
# shellcheck source=/dev/null
# shellcheck disable=SC2034  # variables of DevStack's library
set -o errexit
mode=$1
TOP_DIR=/opt/stack/devstack
FILES=$TOP_DIR/files
cd "$TOP_DIR"
# as in stack.sh
unset LANG LANGUAGE
export LC_ALL=C.UTF-8
umask 022
PATH=$PATH:/usr/local/bin:/usr/local/sbin:/usr/sbin:/sbin
exec 6>&1

source "$TOP_DIR/functions"
source "$TOP_DIR/lib/stack"
GetDistro
extract_localrc_section "$TOP_DIR/local.conf" "$TOP_DIR/localrc" "$TOP_DIR/.localrc.auto"
source "$TOP_DIR/stackrc"

function echo_summary {
    echo "== $*" >&6
}

# Replaces a file system on a loop device
function create_disk {
    sudo mkdir -p "$2"
}

function destroy_disk {
    sudo rm -rf "$2"
}

# A phase must not change options of its caller's shell, nor print a password.
function run_checked_phase {
    local after before log=/opt/stack/logs/$mode-$1-${2:-}.log
    set -o xtrace
    { before=$(set +o; shopt; umask; trap); } 2> /dev/null
    run_phase "$@" > "$log" 2>&1
    { after=$(set +o; shopt; umask; trap); set +o xtrace; } 2> /dev/null
    if [[ "$before" != "$after" ]]; then
        diff <(echo "$before") <(echo "$after") || true
        die $LINENO "the phase $* changed the options of its caller's shell"
    fi
    if grep -n -e "$SERVICE_PASSWORD" -e "$RABBIT_PASSWORD" "$log"; then
        die $LINENO "the phase $* says a password"
    fi
}

function source_libraries {
    local library
    source "$TOP_DIR/lib/rpc_backend"
    fetch_plugins
    run_phase override_defaults
    for library in apache tls infra libraries lvm horizon keystone cinder swift; do
        source "$TOP_DIR/lib/$library"
    done
    KEYSTONE_SERVICE_URI=http://$SERVICE_HOST:5000
    KEYSTONE_AUTH_URI=$KEYSTONE_SERVICE_URI
    KEYSTONE_SERVICE_URI_V3=$KEYSTONE_SERVICE_URI/v3
    run_phase source
    setup_devstack_virtualenv
}

# lib/keystone's own functions bootstrap and serve by uwsgi and Apache; their result is the same
function start_keystone_here {
    install -d -m 700 "$DATA_DIR/keystone"
    echo "$ADMIN_PASSWORD" > "$DATA_DIR/keystone/admin.password"
    run_process keystone "$KEYSTONE_PYTHON -I $KEYSTONE_PROGRAM $DATA_DIR/keystone 5000"
    if ! wait_for_service "$SERVICE_TIMEOUT" "$KEYSTONE_SERVICE_URI_V3"; then
        die $LINENO "keystone did not start"
    fi
    restart_service memcached
}

# The parts of create_keystone_accounts and create_swift_accounts that Sluice needs
function create_accounts {
    get_or_create_domain "$SERVICE_DOMAIN_NAME"
    get_or_create_project "$SERVICE_PROJECT_NAME" "$SERVICE_DOMAIN_NAME"
    get_or_create_role service
    get_or_create_project demo default
    get_or_create_user demo "$ADMIN_PASSWORD" default
    get_or_add_user_project_role member demo demo
    create_service_user swift admin
    get_or_create_service swift object-store "Swift Service"
    get_or_create_endpoint object-store "$REGION_NAME" \
        "$SWIFT_SERVICE_PROTOCOL://$SERVICE_HOST:$SWIFT_DEFAULT_BIND_PORT/v1/AUTH_\$(project_id)s"
}

function stack {
    run_checked_phase stack pre-install
    install_rpc_backend
    restart_rpc_backend
    if [[ $mode == stack ]]; then
        configure_swift
    fi
    run_checked_phase stack install
    start_keystone_here
    write_clouds_yaml
    export OS_CLOUD=${OS_CLOUD:-devstack-admin}
    create_accounts
    if [[ $mode == stack ]]; then
        init_swift
        # the unchanged files, which the plugin must restore
        cp -r "$SWIFT_CONF_DIR" /opt/stack/swift-before
    else
        stop_swift
    fi
    sudo install -d -o "$STACK_USER" "$CINDER_CONF_DIR"
    run_checked_phase stack post-config
    merge_config_group "$TOP_DIR/local.conf" post-config
    start_swift
    run_checked_phase stack extra
    merge_config_group "$TOP_DIR/local.conf" extra
    service_check
    run_checked_phase stack test-config
}

source_libraries
case $mode in
    stack | again)
        stack
        ;;
    unstack)
        run_checked_phase unstack
        stop_keystone
        stop_swift
        ;;
    clean)
        run_checked_phase clean
        sudo find "$SYSTEMD_DIR" -type f -name '*devstack@*service' -delete
        ;;
    *)
        die $LINENO "\`$mode\` is no mode, expected stack, again, unstack or clean"
        ;;
esac
