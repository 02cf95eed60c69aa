//! What the kernel log says of how amdgpu brought a GPU up.

use super::log::{Event, Kind};
use super::{Gpu, View};
use crate::facts::Seen;
use crate::facts::display::AmdgpuDevice;
use crate::tables::{Known, kinds};
use crate::version::Version;

/// Error number of the kernel for a file that does not exist.
const ENOENT: i32 = -2;
/// Firmware that amdgpu does without, by parts of the file names: the security processor's applications (a vendor's word in
/// ROCm/legacy-rocm-build issue 912), the files of virtual functions, and those of blocks that computing does not need.
const OPTIONAL: &[&str] = &["_ta.bin", "_cap.bin", "ip_discovery", "/isp_", "/vpe_"];

/// How amdgpu stands to a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AmdgpuGround<'v> {
    /// It has nothing to do with it: WSL, a GPU that is gone or kept for a virtual machine, or a chip before GCN.
    NotHere,
    /// It holds it.
    Holds,
    /// Another driver does.
    Other(&'v str),
    /// Nobody does.
    Free,
    /// Not known.
    Unknown(String),
}

/// A firmware file that the kernel did not find.
#[derive(Clone, Copy, Debug)]
pub struct MissingFirmware<'v> {
    /// Path below the firmware folder.
    pub file: &'v str,
    /// The driver does without it.
    pub optional: bool,
    /// The line that says so.
    pub says: &'v Event<'v>,
}

/// Kernels of RHEL and SLES, of hardware enablement by vendors, and of clouds: drivers in them are newer.
pub fn carries_drivers_back(release: &str) -> bool {
    [".el", "-oem", "-default", "-azure", "-gcp", "-aws"]
        .iter()
        .any(|mark| release.contains(mark))
}

impl View<'_> {
    /// Whether amdgpu should drive a GPU, and does.
    pub fn amdgpu_ground<'g>(&self, gpu: &'g Gpu) -> AmdgpuGround<'g> {
        // Every chip from GCN on has a target.
        if self.wsl().is_some() || !gpu.is_on_bus() || gpu.chip.is_some() && gpu.target.is_none() {
            return AmdgpuGround::NotHere;
        }
        match &gpu.driver {
            Seen::Got(driver) if driver == "amdgpu" => AmdgpuGround::Holds,
            Seen::Got(driver) => AmdgpuGround::Other(driver),
            Seen::Absent if self.is_reserved(gpu) => AmdgpuGround::NotHere,
            Seen::Absent => AmdgpuGround::Free,
            other => AmdgpuGround::Unknown(format!("{}: {}", gpu.driver_source, other.why())),
        }
    }

    /// The first kernel whose amdgpu takes a GPU, as far as the tables are sure.
    pub fn first_kernel(&self, gpu: &Gpu) -> Option<Known<Version>> {
        let target = gpu.target.as_deref().filter(|_| gpu.target_may_accuse)?;
        let row = self.tables.row(&kinds::TARGET, target)?;
        row.version("first_kernel").filter(Known::may_accuse)
    }

    /// What amdgpu shows of a GPU in sysfs. `Absent`: another driver holds it, or none.
    pub fn amdgpu_device(&self, gpu: &Gpu) -> Seen<&AmdgpuDevice> {
        self.facts
            .drm
            .as_ref()
            .and_then(|drm| match drm.amdgpu.get(&gpu.key) {
                Some(device) => Seen::Got(device),
                None if gpu.is_held_by("amdgpu") => Seen::default(),
                None => gpu.driver.as_ref().and_then(|_| Seen::Absent),
            })
    }

    /// Lines that say that amdgpu could not bring this GPU up.
    pub fn amdgpu_failures<'g>(&'g self, gpu: &'g Gpu) -> impl Iterator<Item = &'g Event<'g>> {
        self.log_of(gpu).filter(|event| match event.kind {
            Kind::InitFatal | Kind::IpBlockFailed { .. } => true,
            // Of a driver whose name only the line tells.
            Kind::ProbeFailed { .. } => event.line.text.contains("amdgpu"),
            _ => false,
        })
    }

    /// Firmware files for this GPU that the kernel did not find. None is optional for which a block of the GPU then gave up.
    pub fn missing_firmware<'g>(
        &'g self,
        gpu: &'g Gpu,
    ) -> impl Iterator<Item = MissingFirmware<'g>> {
        let mut missing: Vec<MissingFirmware<'g>> = Vec::new();
        // Errors of a block may name no GPU.
        let of_this = |event: &&Event| match event.kind {
            Kind::IpBlockFailed { .. } => true,
            _ => gpu.pci.as_ref().is_some_and(|address| event.names(address)),
        };
        for event in self.log_near(gpu).filter(of_this) {
            match &event.kind {
                Kind::FirmwareFailed {
                    file,
                    error: Some(ENOENT),
                } if file.starts_with("amdgpu/") => missing.push(MissingFirmware {
                    file,
                    optional: OPTIONAL.iter().any(|part| file.contains(part)),
                    says: event,
                }),
                Kind::IpBlockFailed { error: ENOENT, .. } => {
                    if let Some(last) = missing.last_mut() {
                        last.optional = false;
                    }
                }
                _ => {}
            }
        }
        missing.into_iter()
    }
}
