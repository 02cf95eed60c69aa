//! Firmware of AMD's driver package, or put there by hand, goes before that of the distribution.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::finding::{Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::log::Kind;
use crate::view::{DriverGround, Loaded, Stack, View};

crate::check! {
    /// The kernel loads firmware for the AMD GPU from `/lib/firmware/updates`, and the driver that the files belong to is not the
    /// one that runs.
    ///
    /// ## Why it matters
    /// These files win over those of the distribution, also when the latter are newer: an update that mends a bad release of
    /// the firmware does nothing.
    ///
    /// ## How it comes about
    /// The package `amdgpu-dkms-firmware` stays behind when `amdgpu-dkms` is removed. Single files may have been put there by hand, as the
    /// way around a bad release; they are to be taken away again later. It is an error only where the log shows that the firmware
    /// fails.
    ///
    /// ## How to confirm
    /// `dpkg -l 'amdgpu-dkms*'`, `ls /lib/firmware/updates/amdgpu`, `dpkg -S /lib/firmware/updates/amdgpu/*`.
    "amdgpu-firmware-override-stale", Driver, Error, each Machine, run
}

const FOLDER: &str = "/lib/firmware/updates/amdgpu";
const PACKAGE: &str = "amdgpu-dkms-firmware";
const DRIVER: &str = "amdgpu-dkms";
const WOULD_TELL: &str = "`ls /lib/firmware/updates/amdgpu` and the list of installed packages";

fn run(view: &View, _: &Tables) -> Verdict {
    let has_gpu = view.gpus_of(Stack::Rocm).any(|gpu| gpu.is_on_bus());
    if !has_gpu || view.wsl().is_some() || view.driver_ground() == DriverGround::Host {
        return Verdict::NotHere;
    }
    // Without the driver nobody loads firmware.
    if matches!(view.loaded("amdgpu"), Loaded::No(_)) {
        return Verdict::NotHere;
    }
    match view.module_version("amdgpu") {
        Seen::Got(version) => {
            return Verdict::fine(format!(
                "AMD's own driver {version} runs, which the files belong to"
            ));
        }
        Seen::Absent => {}
        other => {
            let why = other.map(|_| ()).why();
            return Verdict::cannot_tell(format!("/sys/module/amdgpu/version: {why}"), WOULD_TELL);
        }
    }
    let firmware = view.facts.firmware.as_ref();
    let files = firmware.and_then(|firmware| firmware.amdgpu_updates.as_ref());
    let is_installed = |name: &str| view.package(name).map(|_| ());
    match (is_installed(PACKAGE), is_installed(DRIVER)) {
        (Seen::Got(()), Seen::Absent) => return by_package(view),
        (Seen::Got(()), Seen::Got(())) => return beside_driver(view),
        (Seen::Got(()), other) => {
            return Verdict::cannot_tell(format!("{DRIVER}: {}", other.why()), WOULD_TELL);
        }
        _ => {}
    }
    match files {
        Seen::Got(files) => match files.items.keys().next() {
            // Who brought them is not known where the packages are not.
            Some(first) => by_hand(first, files.items.len()),
            None if files.whole => Verdict::fine(format!("{FOLDER} holds no firmware")),
            None => Verdict::cannot_tell(
                format!("{FOLDER}: not all of it could be listed"),
                WOULD_TELL,
            ),
        },
        // What a package brings would stand there.
        Seen::Absent => Verdict::fine(format!("{FOLDER} does not exist")),
        other => Verdict::cannot_tell(format!("{FOLDER}: {}", other.map(|_| ()).why()), WOULD_TELL),
    }
}

fn by_package(view: &View) -> Verdict {
    let finding = Finding::new(format!(
        "{PACKAGE} is installed without {DRIVER}: its firmware wins over that of the distribution"
    ))
    .saw("/sys/module/amdgpu/version", "does not exist: the driver is the kernel's own")
    .saw(view.package_database(), format!("{PACKAGE} is installed, {DRIVER} is not"))
    .why("Updates of the distribution's firmware do nothing, and that of the package may be a bad release")
    .fix(FixCall::new("remove-amdgpu-firmware"));
    let fails = view.log_events.iter().find(|event| {
        let of_firmware = match &event.kind {
            Kind::MesFailed | Kind::PspFailed => true,
            Kind::FirmwareFailed { file, .. } => file.starts_with("amdgpu/"),
            _ => false,
        };
        event.current && of_firmware
    });
    match fails {
        Some(event) => finding.saw(view.log_source(), event.says()),
        None => finding.severity(Severity::Warning).works_all_the_same(),
    }
    .likely()
    .into()
}

/// Both packages are there, and the driver of the kernel runs.
fn beside_driver(view: &View) -> Verdict {
    Finding::new(format!(
        "{DRIVER} is installed and does not drive the GPU; the firmware of {PACKAGE} is loaded all the same"
    ))
    .severity(Severity::Note)
    .likely()
    .works_all_the_same()
    .saw(
        "/sys/module/amdgpu/version",
        "does not exist: the driver is the kernel's own",
    )
    .saw(
        view.package_database(),
        format!("{DRIVER} and {PACKAGE} are installed"),
    )
    .why("The firmware was made for the driver of the package; where that one cannot be built any more, both should go")
    .fix(FixCall::new("look-at-firmware-override"))
    .into()
}

fn by_hand(first: &str, count: usize) -> Verdict {
    let files = match count {
        1 => "a file".to_owned(),
        count => format!("{count} files"),
    };
    Finding::new(format!("{files} in {FOLDER} go before the firmware of the distribution"))
        .severity(Severity::Note)
        .likely()
        .works_all_the_same()
        .saw(FOLDER, format!("{files}, {first} among them"))
        .saw("/sys/module/amdgpu/version", "does not exist: the driver is the kernel's own")
        .why("Where this was the way around a bad release it hides the good one that came later; it may also be right")
        .fix(FixCall::new("look-at-firmware-override"))
        .into()
}
