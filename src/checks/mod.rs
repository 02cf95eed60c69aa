//! Every check, in a file of its own. This list is written by `BLESS=1 cargo test`.

use crate::check::Check;

pub mod amdgpu_driver_not_bound;
pub mod gpu_device_permission_denied;
pub mod gpu_driver_blacklisted;
pub mod gpu_fell_off_bus;
pub mod group_change_needs_relogin;
pub mod nomodeset_set;
pub mod nouveau_bound;
pub mod nvidia_device_nodes_missing;
pub mod nvidia_driver_not_installed;
pub mod nvidia_module_missing_for_kernel;
pub mod nvidia_module_not_loaded;
pub mod nvidia_uvm_node_missing;
pub mod running_kernel_not_installed;
pub mod visible_devices_hide_gpus;
pub mod wsl_host_driver_missing;

/// All checks, by name.
pub const ALL: &[Check] = &[
    amdgpu_driver_not_bound::CHECK,
    gpu_device_permission_denied::CHECK,
    gpu_driver_blacklisted::CHECK,
    gpu_fell_off_bus::CHECK,
    group_change_needs_relogin::CHECK,
    nomodeset_set::CHECK,
    nouveau_bound::CHECK,
    nvidia_device_nodes_missing::CHECK,
    nvidia_driver_not_installed::CHECK,
    nvidia_module_missing_for_kernel::CHECK,
    nvidia_module_not_loaded::CHECK,
    nvidia_uvm_node_missing::CHECK,
    running_kernel_not_installed::CHECK,
    visible_devices_hide_gpus::CHECK,
    wsl_host_driver_missing::CHECK,
];
