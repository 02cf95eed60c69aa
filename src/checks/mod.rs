//! Every check, in a file of its own. This list is written by `BLESS=1 cargo test`.

use crate::check::Check;

pub mod akmods_build_unfinished;
pub mod amdgpu_cwsr_fix_missing;
pub mod amdgpu_dkms_on_apu;
pub mod amdgpu_driver_not_bound;
pub mod amdgpu_firmware_missing;
pub mod amdgpu_firmware_override_stale;
pub mod amdgpu_gtt_limit_conflict;
pub mod amdgpu_gtt_limit_small;
pub mod amdgpu_hang;
pub mod amdgpu_init_failed;
pub mod amdgpu_mes_firmware_bad;
pub mod amdgpu_param_suspicious;
pub mod amdgpu_render_minors_exhausted;
pub mod container_driver_capabilities_missing;
pub mod container_driver_library_mismatch;
pub mod container_without_gpu_devices;
pub mod cuda_compat_misused;
pub mod cuda_device_order_differs;
pub mod cuda_newer_than_driver;
pub mod cuda_ptx_newer_than_driver;
pub mod driver_reboot_pending;
pub mod ecc_uncorrected_errors;
pub mod egpu_link_limited;
pub mod egpu_not_authorized;
pub mod gpu_bandwidth_low;
pub mod gpu_bound_to_vfio;
pub mod gpu_device_permission_denied;
pub mod gpu_driver_blacklisted;
pub mod gpu_fell_off_bus;
pub mod gpu_hidden_from_bus;
pub mod gpu_stuck_in_d3cold;
pub mod gpu_thermal_throttle;
pub mod gpu_without_tensor_cores;
pub mod gpudirect_rdma_missing;
pub mod group_change_needs_relogin;
pub mod hsa_override_active;
pub mod hsa_override_needed;
pub mod hsa_override_wrong;
pub mod igpu_visible_to_rocm;
pub mod intel_compute_runtime_missing;
pub mod iommu_breaks_p2p;
pub mod jetson_without_nvml;
pub mod kernel_headers_missing;
pub mod kernel_module_build_failed;
pub mod kernel_too_old_for_gpu;
pub mod kfd_device_missing;
pub mod kfd_no_gpu_node;
pub mod kfd_open_failed;
pub mod kfd_pcie_atomics_rejected;
pub mod libcuda_stub_loaded;
pub mod memlock_limit_low;
pub mod model_exceeds_vram;
pub mod module_signature_rejected;
pub mod nomodeset_set;
pub mod nouveau_bound;
pub mod nova_core_bound;
pub mod nvcc_differs_from_cuda_home;
pub mod nvcc_drops_gpu_arch;
pub mod nvcc_glibc_incompatible;
pub mod nvcc_host_compiler_unsupported;
pub mod nvcc_torch_cuda_mismatch;
pub mod nvidia_compute_mode_restricted;
pub mod nvidia_device_nodes_missing;
pub mod nvidia_driver_branch_eol;
pub mod nvidia_driver_libraries_duplicated;
pub mod nvidia_driver_library_mismatch;
pub mod nvidia_driver_not_installed;
pub mod nvidia_driver_too_old_for_gpu;
pub mod nvidia_fabric_manager_not_ready;
pub mod nvidia_gpu_count_mismatch;
pub mod nvidia_gpu_needs_legacy_driver;
pub mod nvidia_gpu_needs_open_module;
pub mod nvidia_gpu_needs_proprietary_module;
pub mod nvidia_gsp_disabled_with_open;
pub mod nvidia_gsp_firmware_missing;
pub mod nvidia_init_failed;
pub mod nvidia_libraries_missing;
pub mod nvidia_mig_without_instances;
pub mod nvidia_mixed_install_sources;
pub mod nvidia_module_missing_for_kernel;
pub mod nvidia_module_not_loaded;
pub mod nvidia_no_gpu_bound;
pub mod nvidia_p2p_unsupported;
pub mod nvidia_packages_out_of_step;
pub mod nvidia_power_cable_missing;
pub mod nvidia_suspend_services_missing;
pub mod nvidia_uvm_node_missing;
pub mod nvidia_uvm_stale_after_suspend;
pub mod nvidia_vgpu_unlicensed;
pub mod nvidia_xid_hardware;
pub mod pci_bar_unassigned;
pub mod pcie_link_degraded;
pub mod power_limit_below_default;
pub mod radeon_driver_bound;
pub mod ram_smaller_than_model;
pub mod resizable_bar_off;
pub mod rocm_distro_and_vendor_mixed;
pub mod rocm_gpu_dropped;
pub mod rocm_gpu_not_officially_supported;
pub mod rocm_libraries_lack_gfx;
pub mod rocm_multiple_installs;
pub mod rocm_newer_than_driver;
pub mod rocm_not_installed;
pub mod running_kernel_not_installed;
pub mod service_environment_differs;
pub mod service_user_lacks_gpu_access;
pub mod two_gpu_vendors;
pub mod unified_memory_gpu;
pub mod visible_devices_hide_gpus;
pub mod vm_without_gpu;
pub mod vram_occupied_by_others;
pub mod vulkan_icd_missing;
pub mod workaround_env_leftover;
pub mod wsl_host_driver_missing;
pub mod wsl_libcuda_not_on_path;
pub mod wsl_linux_driver_installed;
pub mod wsl_rocm_not_ready;

/// All checks, by name.
pub const ALL: &[Check] = &[
    akmods_build_unfinished::CHECK,
    amdgpu_cwsr_fix_missing::CHECK,
    amdgpu_dkms_on_apu::CHECK,
    amdgpu_driver_not_bound::CHECK,
    amdgpu_firmware_missing::CHECK,
    amdgpu_firmware_override_stale::CHECK,
    amdgpu_gtt_limit_conflict::CHECK,
    amdgpu_gtt_limit_small::CHECK,
    amdgpu_hang::CHECK,
    amdgpu_init_failed::CHECK,
    amdgpu_mes_firmware_bad::CHECK,
    amdgpu_param_suspicious::CHECK,
    amdgpu_render_minors_exhausted::CHECK,
    container_driver_capabilities_missing::CHECK,
    container_driver_library_mismatch::CHECK,
    container_without_gpu_devices::CHECK,
    cuda_compat_misused::CHECK,
    cuda_device_order_differs::CHECK,
    cuda_newer_than_driver::CHECK,
    cuda_ptx_newer_than_driver::CHECK,
    driver_reboot_pending::CHECK,
    ecc_uncorrected_errors::CHECK,
    egpu_link_limited::CHECK,
    egpu_not_authorized::CHECK,
    gpu_bandwidth_low::CHECK,
    gpu_bound_to_vfio::CHECK,
    gpu_device_permission_denied::CHECK,
    gpu_driver_blacklisted::CHECK,
    gpu_fell_off_bus::CHECK,
    gpu_hidden_from_bus::CHECK,
    gpu_stuck_in_d3cold::CHECK,
    gpu_thermal_throttle::CHECK,
    gpu_without_tensor_cores::CHECK,
    gpudirect_rdma_missing::CHECK,
    group_change_needs_relogin::CHECK,
    hsa_override_active::CHECK,
    hsa_override_needed::CHECK,
    hsa_override_wrong::CHECK,
    igpu_visible_to_rocm::CHECK,
    intel_compute_runtime_missing::CHECK,
    iommu_breaks_p2p::CHECK,
    jetson_without_nvml::CHECK,
    kernel_headers_missing::CHECK,
    kernel_module_build_failed::CHECK,
    kernel_too_old_for_gpu::CHECK,
    kfd_device_missing::CHECK,
    kfd_no_gpu_node::CHECK,
    kfd_open_failed::CHECK,
    kfd_pcie_atomics_rejected::CHECK,
    libcuda_stub_loaded::CHECK,
    memlock_limit_low::CHECK,
    model_exceeds_vram::CHECK,
    module_signature_rejected::CHECK,
    nomodeset_set::CHECK,
    nouveau_bound::CHECK,
    nova_core_bound::CHECK,
    nvcc_differs_from_cuda_home::CHECK,
    nvcc_drops_gpu_arch::CHECK,
    nvcc_glibc_incompatible::CHECK,
    nvcc_host_compiler_unsupported::CHECK,
    nvcc_torch_cuda_mismatch::CHECK,
    nvidia_compute_mode_restricted::CHECK,
    nvidia_device_nodes_missing::CHECK,
    nvidia_driver_branch_eol::CHECK,
    nvidia_driver_libraries_duplicated::CHECK,
    nvidia_driver_library_mismatch::CHECK,
    nvidia_driver_not_installed::CHECK,
    nvidia_driver_too_old_for_gpu::CHECK,
    nvidia_fabric_manager_not_ready::CHECK,
    nvidia_gpu_count_mismatch::CHECK,
    nvidia_gpu_needs_legacy_driver::CHECK,
    nvidia_gpu_needs_open_module::CHECK,
    nvidia_gpu_needs_proprietary_module::CHECK,
    nvidia_gsp_disabled_with_open::CHECK,
    nvidia_gsp_firmware_missing::CHECK,
    nvidia_init_failed::CHECK,
    nvidia_libraries_missing::CHECK,
    nvidia_mig_without_instances::CHECK,
    nvidia_mixed_install_sources::CHECK,
    nvidia_module_missing_for_kernel::CHECK,
    nvidia_module_not_loaded::CHECK,
    nvidia_no_gpu_bound::CHECK,
    nvidia_p2p_unsupported::CHECK,
    nvidia_packages_out_of_step::CHECK,
    nvidia_power_cable_missing::CHECK,
    nvidia_suspend_services_missing::CHECK,
    nvidia_uvm_node_missing::CHECK,
    nvidia_uvm_stale_after_suspend::CHECK,
    nvidia_vgpu_unlicensed::CHECK,
    nvidia_xid_hardware::CHECK,
    pci_bar_unassigned::CHECK,
    pcie_link_degraded::CHECK,
    power_limit_below_default::CHECK,
    radeon_driver_bound::CHECK,
    ram_smaller_than_model::CHECK,
    resizable_bar_off::CHECK,
    rocm_distro_and_vendor_mixed::CHECK,
    rocm_gpu_dropped::CHECK,
    rocm_gpu_not_officially_supported::CHECK,
    rocm_libraries_lack_gfx::CHECK,
    rocm_multiple_installs::CHECK,
    rocm_newer_than_driver::CHECK,
    rocm_not_installed::CHECK,
    running_kernel_not_installed::CHECK,
    service_environment_differs::CHECK,
    service_user_lacks_gpu_access::CHECK,
    two_gpu_vendors::CHECK,
    unified_memory_gpu::CHECK,
    visible_devices_hide_gpus::CHECK,
    vm_without_gpu::CHECK,
    vram_occupied_by_others::CHECK,
    vulkan_icd_missing::CHECK,
    workaround_env_leftover::CHECK,
    wsl_host_driver_missing::CHECK,
    wsl_libcuda_not_on_path::CHECK,
    wsl_linux_driver_installed::CHECK,
    wsl_rocm_not_ready::CHECK,
];
