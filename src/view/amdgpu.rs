//! What the kernel log says of how amdgpu brought a GPU up.

use super::log::{Event, Kind};
use super::{Gpu, Stack, View};

/// Error number of the kernel for a file that does not exist.
const ENOENT: i32 = -2;
/// Firmware that amdgpu does without, by parts of the file names: the security processor's applications (a vendor's word in
/// ROCm/legacy-rocm-build issue 912), the files of virtual functions, and those of blocks that computing does not need.
const OPTIONAL: &[&str] = &["_ta.bin", "_cap.bin", "ip_discovery", "/isp_", "/vpe_"];

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

impl View<'_> {
    /// Lines that say that amdgpu could not bring this GPU up.
    pub fn amdgpu_failures<'g>(&'g self, gpu: &'g Gpu) -> impl Iterator<Item = &'g Event<'g>> {
        self.log_of(gpu).filter(|event| match event.kind {
            Kind::InitFatal | Kind::IpBlockFailed { .. } => true,
            // Of a driver whose name only the line tells.
            Kind::ProbeFailed { .. } => event.line.text.contains("amdgpu"),
            _ => false,
        })
    }

    /// Firmware files for this GPU that the kernel did not find.
    pub fn missing_firmware<'g>(
        &'g self,
        gpu: &'g Gpu,
    ) -> impl Iterator<Item = MissingFirmware<'g>> {
        self.log_of(gpu).filter_map(|event| match &event.kind {
            Kind::FirmwareFailed {
                file,
                error: Some(ENOENT),
            } if file.starts_with("amdgpu/") => Some(MissingFirmware {
                file,
                optional: OPTIONAL.iter().any(|part| file.contains(part)),
                says: event,
            }),
            _ => None,
        })
    }

    /// Lines about this GPU, and those that name none where it is AMD's only one.
    pub fn log_near<'g>(&'g self, gpu: &'g Gpu) -> impl Iterator<Item = &'g Event<'g>> {
        let on_bus = self.gpus_of(Stack::Rocm).filter(|gpu| gpu.is_on_bus());
        let alone = on_bus.count() == 1;
        self.log_events.iter().filter(move |event| {
            let named = |address: &String| event.names(address);
            event.current
                && (gpu.pci.as_ref().is_some_and(named) || alone && event.addresses.is_empty())
        })
    }
}
