//! A system with NVSwitches whose fabric manager is missing, stopped or of another version.

use crate::check::Verdict;
use crate::facts::Seen;
use crate::facts::packages::Package;
use crate::facts::services::Unit;
use crate::finding::{Finding, Severity};
use crate::fix::FixCall;
use crate::tables::Tables;
use crate::view::{Stack, View};

crate::check! {
    /// This system has NVSwitches, and the fabric manager that sets them up is missing, does not run, or is of another version
    /// than the driver.
    ///
    /// ## Why it matters
    /// On such systems the GPUs speak to each other through the switches alone. Until the fabric manager has set them up, CUDA
    /// refuses every program with 802 (`system not yet initialized`), while `nvidia-smi` shows nothing wrong.
    ///
    /// ## How it comes about
    /// The package was never installed, its service is not enabled, or the driver was upgraded without it: both must be of the
    /// same version to the last digit. Cards in slots, boards that join their GPUs without switches, and GB200 and GB300
    /// need none on the host.
    ///
    /// ## How to confirm
    /// `systemctl status nvidia-fabricmanager`, `nv-fabricmanager --version`, `nvidia-smi -q | grep -A2 Fabric`.
    "nvidia-fabric-manager-not-ready", Runtime, Error, each Stack, run
}

const UNIT: &str = "nvidia-fabricmanager.service";
const WOULD_TELL: &str =
    "`systemctl status nvidia-fabricmanager` and `nvidia-smi -q | grep -A2 Fabric`";
const WHY: &str =
    "Until it runs CUDA refuses every program with 802, although nvidia-smi shows all GPUs";

fn run(_: Stack, view: &View, _: &Tables) -> Verdict {
    // Where the driver does not run there is nothing to set up yet.
    if !view.has_own_nvidia_driver() {
        return Verdict::NotHere;
    }
    let fabric = fabric(view);
    let shows = match (view.nvswitches().next(), &fabric) {
        (Some(address), _) => (
            format!("/sys/bus/pci/devices/{address}"),
            "an NVSwitch".to_owned(),
        ),
        // The switches of HGX B200 and B300 are behind a network card; NVML alone tells of them.
        (None, Fabric::Waits(..) | Fabric::Ready) if is_hgx_without_switch(view) => (
            "nvmlDeviceGetGpuFabricInfoV()".to_owned(),
            "the GPUs are joined by a fabric".to_owned(),
        ),
        (None, Fabric::Unknown) if is_hgx_without_switch(view) => {
            return Verdict::cannot_tell(
                "these GPUs are mostly joined by switches, and NVML does not tell the state of the fabric",
                WOULD_TELL,
            );
        }
        (None, _) if view.gpus_of(Stack::Cuda).count() > 1 && !bus_is_whole(view) => {
            return Verdict::cannot_tell(
                format!(
                    "whether there are NVSwitches: {}",
                    view.why_gpus_are_unknown()
                ),
                "`lspci -d 10de: | grep -i bridge`",
            );
        }
        (None, _) => return Verdict::NotHere,
    };
    judge(shows, &fabric, view)
}

/// What NVML says of the fabric, over all GPUs.
enum Fabric {
    /// Set up, for every GPU.
    Ready,
    /// Not set up for this GPU: its key and the state.
    Waits(String, String),
    /// Not told, or these GPUs do not tell.
    Unknown,
}

fn fabric(view: &View) -> Fabric {
    let Some(nvml) = view.facts.nvml.got() else {
        return Fabric::Unknown;
    };
    let states = || {
        nvml.devices
            .iter()
            .map(|(key, device)| (key, device.fabric_state.got().map(String::as_str)))
    };
    let waits = states().find_map(|(key, state)| {
        state
            .filter(|state| matches!(*state, "not_started" | "in_progress"))
            .map(|state| (key.clone(), state.to_owned()))
    });
    match waits {
        Some((key, state)) => Fabric::Waits(key, state),
        None if !nvml.devices.is_empty()
            && states().all(|(_, state)| state == Some("completed")) =>
        {
            Fabric::Ready
        }
        None => Fabric::Unknown,
    }
}

fn bus_is_whole(view: &View) -> bool {
    view.facts.pci.got().is_some_and(|pci| pci.whole)
}

/// Several B200 or B300, which only come on boards with switches. Those of GB200 and GB300 are set up from the switch trays.
fn is_hgx_without_switch(view: &View) -> bool {
    let is_one = |name: &str| {
        ["B200", "B300"].iter().any(|chip| name.contains(chip))
            && !["GB200", "GB300"].iter().any(|chip| name.contains(chip))
    };
    let names = view
        .gpus_of(Stack::Cuda)
        .filter_map(|gpu| gpu.name.as_deref());
    names.filter(|name| is_one(name)).count() > 1
}

fn judge((source, says): (String, String), fabric: &Fabric, view: &View) -> Verdict {
    if matches!(fabric, Fabric::Ready) {
        return Verdict::fine("NVML says that the fabric is set up for every GPU");
    }
    let begin = |title: &str| {
        let finding = Finding::new(title).saw(&source, &says);
        match fabric {
            Fabric::Waits(key, state) => finding.saw(
                "nvmlDeviceGetGpuFabricInfoV()",
                format!("{key}: the fabric is {state}"),
            ),
            _ => finding,
        }
    };
    let units = view
        .facts
        .services
        .got()
        .and_then(|services| services.units.get(UNIT));
    let unit = units.and_then(Seen::got);
    let runs = unit.map_or_else(Seen::default, |unit| unit.running.as_ref());
    let loaded = view.nvidia_loaded_version().into_got();
    let packages = packages(view);
    let installed = packages.got().and_then(|packages| packages.first());
    // An upgrade that took both along leaves the old one running until the restart, so what runs outweighs what is installed.
    if let (Some((driver, driver_source)), Seen::Got(found)) = (loaded, &packages)
        && !found
            .iter()
            .any(|(_, package)| package.upstream() == driver)
        && let Some((name, package)) = installed
    {
        let version = package.upstream();
        let finding = begin(&format!(
            "the fabric manager is of version {version}, the driver of {driver}: they must be equal"
        ))
        .cause("version")
        .saw(view.package_database(), format!("{name} {}", package.version))
        .saw(driver_source, driver)
        .why("A fabric manager of another version ends at once, and CUDA refuses every program with 802")
        .fix(with_versions(FixCall::new("install-fabric-manager"), driver));
        return match runs {
            Seen::Got(group) => finding
                .saw(
                    group,
                    "is there: the one that was started before still runs",
                )
                .severity(Severity::Warning)
                .likely(),
            _ => finding,
        }
        .into();
    }
    let fits = loaded.is_some() && packages.got().is_some();
    match (unit, &packages) {
        (Some(unit), _) => {
            let waits = matches!(fabric, Fabric::Waits(..));
            of_unit(unit, fits, waits, begin)
        }
        (None, Seen::Absent) if units.is_some_and(Seen::is_absent) => missing(begin, view),
        (None, _) => {
            let of_unit = units.map(|unit| unit.as_ref().map(|_| ()).why());
            Verdict::cannot_tell(
                format!(
                    "the fabric manager: its package: {}; {UNIT}: {}",
                    packages.map(|_| ()).why(),
                    of_unit.unwrap_or_else(|| view.facts.services.as_ref().map(|_| ()).why())
                ),
                WOULD_TELL,
            )
        }
    }
}

/// `fits`: its package was found to be of the driver's version. `waits`: NVML says that the fabric is not set up.
fn of_unit(unit: &Unit, fits: bool, waits: bool, begin: impl Fn(&str) -> Finding) -> Verdict {
    let stopped = || {
        let finding = begin("the fabric manager does not run").cause("stopped");
        let finding = match (&unit.enabled_by, unit.masked) {
            (_, true) => finding.saw(&unit.file, "is masked"),
            (Seen::Absent, _) => finding.saw(&unit.file, "is not enabled"),
            _ => finding.saw(&unit.file, "is there"),
        };
        finding.why(WHY).fix(FixCall::new("start-fabric-manager"))
    };
    match &unit.running {
        // Right after the start the fabric is still being trained.
        Seen::Got(group) if waits => Verdict::cannot_tell(
            format!("{group} is there, and NVML says that the fabric is not set up yet"),
            "`journalctl -u nvidia-fabricmanager -b`",
        ),
        Seen::Got(group) => Verdict::fine(format!("it runs ({group})")),
        Seen::Absent => stopped()
            .saw(
                format!("/sys/fs/cgroup/system.slice/{UNIT}"),
                "does not exist",
            )
            .into(),
        _ if unit.masked => stopped().into(),
        other if waits => stopped()
            .likely()
            .saw(format!("/sys/fs/cgroup/system.slice/{UNIT}"), other.why())
            .into(),
        _ if fits && unit.enabled_by.got().is_some() => Verdict::fine(
            "it is of the driver's version and enabled at boot; whether it runs now was not seen",
        ),
        other => Verdict::cannot_tell(format!("whether it runs: {}", other.why()), WOULD_TELL),
    }
}

fn missing(begin: impl Fn(&str) -> Finding, view: &View) -> Verdict {
    if view.place.is_unknown() || view.facts.mounts.is_unknown() {
        return Verdict::cannot_tell(
            "whether the driver and its fabric manager run from a container",
            "`findmnt /run/nvidia/driver`",
        );
    }
    if let Some(point) = view.driver_container() {
        return Verdict::cannot_tell(
            format!("the driver runs from a container ({point}), and its fabric manager with it"),
            "`nvidia-smi -q | grep -A2 Fabric`",
        );
    }
    let finding = begin("the fabric manager is not installed")
        .cause("not-installed")
        .saw(view.package_database(), "no package nvidia-fabricmanager")
        .saw(
            format!("/etc/systemd/system/{UNIT}"),
            "does not exist, nor in any other folder of units",
        )
        .why(WHY);
    let fix = FixCall::new("install-fabric-manager");
    match view.nvidia_loaded_version() {
        Seen::Got((version, _)) => finding.fix(with_versions(fix, version)),
        _ => finding.fix(fix),
    }
    .into()
}

fn with_versions(call: FixCall, version: &str) -> FixCall {
    let branch = version.split('.').next().unwrap_or(version);
    call.with("version", version).with("branch", branch)
}

/// Packages of the fabric manager itself, not those to build programs with.
fn packages<'v>(view: &'v View) -> Seen<Vec<(&'v str, &'v Package)>> {
    let found = |pattern| {
        view.packages_matching(pattern).and_then(|packages| {
            let own: Vec<(&str, &Package)> = packages
                .into_iter()
                .filter(|(name, _)| !name.contains("-dev"))
                .collect();
            match own.is_empty() {
                true => Seen::Absent,
                false => Seen::Got(own),
            }
        })
    };
    found("nvidia-fabricmanager*").or_else(|| found("nvidia-fabric-manager*"))
}
