//! What recorded machines have installed: the library that programs load, packages of three managers, and units.

use crate::{machines, program};
use gpucheck::facts::{Facts, Seen};
use gpucheck::host::archive::Archive;
use gpucheck::host::machine::Entries;
use gpucheck::host::redact::Redactor;
use gpucheck::host::{Host, Options};
use gpucheck::probes;
use gpucheck::tables::Tables;
use gpucheck::view::View;
use std::fs;

/// The facts of a machine of the shared ones with some lines more; None: it is not here.
fn facts(name: &str, more: &str) -> Option<Facts> {
    let path = program::shared("machines")?.join(name).join("machine.txt");
    let text = fs::read_to_string(path).expect(name) + more;
    let machine = machines::resolve(&text, 0).expect(name);
    let facts = of(machine.clone());
    // A recording of the replay tells the same.
    let host = host(machine).recording();
    let again = of(Entries::new(asked(&host).1));
    assert_eq!(again.software, facts.software, "{name}");
    assert_eq!(again.packages, facts.packages, "{name}");
    assert_eq!(again.services, facts.services, "{name}");
    assert_eq!(again.users, facts.users, "{name}");
    Some(facts)
}

fn host(machine: Entries) -> Host {
    Host::new(
        Box::new(Archive::new(machine)),
        Redactor::off(),
        Options::default(),
    )
}

fn asked(host: &Host) -> (Facts, Vec<gpucheck::host::machine::Entry>) {
    let mut facts = Facts::default();
    for (_, probe) in probes::ALL {
        probe(host, &mut facts);
    }
    (facts, host.take_entries())
}

fn of(machine: Entries) -> Facts {
    asked(&host(machine)).0
}

/// The winner of a name in words: `PATH VERSION VIA`.
fn winner(name: &str, more: &str, library: &str) -> Option<String> {
    let facts = facts(name, more)?;
    let tables = Tables::embedded();
    let view = View::new(&facts, &tables, &[]);
    Some(match view.winner(library) {
        Seen::Got(file) => format!(
            "{} {} {}",
            file.path,
            view.library_version(file).unwrap_or("-"),
            file.via.as_deref().unwrap_or("-")
        ),
        other => other.why(),
    })
}

fn check(rows: &[(&str, &str, &str, &str)]) {
    for (name, more, library, expected) in rows {
        let Some(seen) = winner(name, more, library) else {
            return;
        };
        assert_eq!(seen, *expected, "{name} {more}");
    }
}

#[test]
fn the_library_that_a_program_loads() {
    const CUDA: &str = "libcuda.so.1";
    check(&[
        (
            "ubuntu-24.04-rtx4090",
            "",
            CUDA,
            "/usr/lib/x86_64-linux-gnu/libcuda.so.1 580.126.09 /etc/ld.so.conf",
        ),
        (
            "ubuntu-24.04-rtx4090",
            "",
            "libnvidia-ptxjitcompiler.so.1",
            "/usr/lib/x86_64-linux-gnu/libnvidia-ptxjitcompiler.so.1 580.126.09 /etc/ld.so.conf",
        ),
        (
            "fedora-silverblue-rtx3060",
            "",
            CUDA,
            "/usr/lib64/libcuda.so.1 580.119.02 default folder",
        ),
        (
            "quiet-nvidia-nixos-paths",
            "",
            "libnvidia-ml.so.1",
            "/run/opengl-driver/lib/libnvidia-ml.so.1 580.126.09 -",
        ),
        (
            "wsl2-ubuntu-rtx3080",
            "",
            CUDA,
            "/usr/lib/wsl/lib/libcuda.so.1 - /etc/ld.so.conf",
        ),
        (
            "docker-in-rtx4090",
            "",
            CUDA,
            "/usr/lib/x86_64-linux-gnu/libcuda.so.1 580.126.09 default folder",
        ),
        // A compatibility package on the loader's path wins.
        (
            "nv-029",
            "",
            CUDA,
            "/usr/local/cuda/compat/libcuda.so.1 545.23.08 LD_LIBRARY_PATH",
        ),
        ("debian-12-no-gpu-vm", "", CUDA, "does not exist"),
    ]);
}

#[test]
fn the_cache_decides_the_order_and_broken_files_never_win() {
    const NAME: &str = "ubuntu-24.04-rtx4090";
    const CUDA: &str = "libcuda.so.1";
    const OLDER: &str = "exists /opt/old/libcuda.so.1\nelf /opt/old/libcuda.so.1 {\"class\": 64}\n";
    let usual = "/usr/lib/x86_64-linux-gnu/libcuda.so.1 580.126.09";
    let cached = format!("{usual} /etc/ld.so.cache");
    let by_default = format!("{usual} default folder");
    let line = |kind: &str, folder: &str| format!("| {CUDA} ({kind}) => {folder}/{CUDA}\n");
    let cache = |lines: String| format!("file /etc/ld.so.cache kept\n{lines}{OLDER}");
    let (own, old) = (
        line("libc6,x86-64", "/usr/lib/x86_64-linux-gnu"),
        line("libc6,x86-64", "/opt/old"),
    );
    let old_wins = "/opt/old/libcuda.so.1 - /etc/ld.so.cache";
    let empty = "stat /opt/old/libcuda.so.1 file 0644 0:0 0 -\n";
    let narrow = "elf /opt/old/libcuda.so.1 {\"class\": 32}\n";
    check(&[
        (NAME, &cache(format!("{own}{old}")), CUDA, &cached),
        (NAME, &cache(format!("{old}{own}")), CUDA, old_wins),
        (NAME, &cache(String::new()), CUDA, &by_default),
        (NAME, &(cache(format!("{old}{own}")) + empty), CUDA, &cached),
        (
            NAME,
            &(cache(format!("{old}{own}")) + narrow),
            CUDA,
            &cached,
        ),
        // A cache that could be read in part only counts as one that could not be read.
        (
            NAME,
            &format!("file /etc/ld.so.cache cut\n{old}{OLDER}"),
            CUDA,
            &format!("{usual} /etc/ld.so.conf"),
        ),
    ]);
}

#[test]
fn a_library_for_32_bit_programs_is_seen_and_never_wins() {
    const FOLDER: &str = "/usr/lib/i386-linux-gnu";
    let only = format!(
        "absent /usr/lib/x86_64-linux-gnu/libcuda.so.1\nlink {FOLDER}/libcuda.so.1 -> libcuda.so.580.126.09\n\
         exists {FOLDER}/libcuda.so.580.126.09\nelf {FOLDER}/libcuda.so.580.126.09 {{\"class\": 32, \"machine\": \"i386\"}}\n"
    );
    let Some(seen) = facts("ubuntu-24.04-rtx4090", &only) else {
        return;
    };
    let tables = Tables::embedded();
    let view = View::new(&seen, &tables, &[]);
    let files = view.library("libcuda.so.1").into_got().expect("the file");
    assert_eq!(files.len(), 1);
    assert!(files[0].is_32_bit());
    assert!(view.winner("libcuda.so.1").is_absent());
    assert!(view.driver_library().is_absent());

    // Where the folder of 64-bit libraries cannot be looked into, this one proves nothing.
    let barred = format!(
        "{only}error /usr/lib/x86_64-linux-gnu/libcuda.so.1 stat EACCES\nerror /usr/lib/x86_64-linux-gnu/libcuda.so.1 link EACCES\n"
    );
    let seen = facts("ubuntu-24.04-rtx4090", &barred).expect("the same machine");
    let view = View::new(&seen, &tables, &[]);
    assert!(view.winner("libcuda.so.1").is_unknown());
}

#[test]
fn stubs_win_only_where_the_loader_is_brought_to_them() {
    let stub = "exists /usr/local/cuda-12.8/lib64/stubs/libcuda.so.1\nenv LD_LIBRARY_PATH=/usr/local/cuda-12.8/lib64/stubs\n";
    check(&[(
        "ubuntu-24.04-rtx4090",
        stub,
        "libcuda.so.1",
        "/usr/local/cuda-12.8/lib64/stubs/libcuda.so.1 - LD_LIBRARY_PATH",
    )]);
}

#[test]
fn packages_of_three_managers() {
    let tables = Tables::embedded();
    // Machine, manager, package, version and state; no version: proved not to be installed; `?`: not known.
    for (name, manager, package, expected) in [
        (
            "ubuntu-24.04-rtx4090",
            "dpkg",
            "libnvidia-compute-580",
            "580.126.09-0ubuntu0.24.04.1 installed",
        ),
        ("ubuntu-24.04-rtx4090", "dpkg", "nvidia-dkms-580", ""),
        ("ubuntu-24.04-rtx4090", "dpkg", "libc6", "?"),
        // Removed; its settings are still there.
        (
            "nvidia-not-installed-dpkg-rc",
            "dpkg",
            "nvidia-driver-580-open",
            "",
        ),
        ("nvidia-not-installed-dpkg-rc", "dpkg", "nvidia*", ""),
        (
            "nvidia-not-installed-dpkg-rc",
            "dpkg",
            "cuda-toolkit*",
            "12.8.1-1 installed",
        ),
        (
            "amd-a26",
            "dpkg",
            "rocminfo4wsl-amdgpu",
            "1.14.0-2016695.24.04 installed",
        ),
        (
            "fedora-silverblue-rtx3060",
            "rpm",
            "xorg-x11-drv-nvidia-cuda",
            "580.119.02-1.fc42 installed",
        ),
        (
            "fedora-silverblue-rtx3060",
            "rpm",
            "kmod-nvidia*",
            "580.119.02-1.fc42 installed",
        ),
        (
            "fedora-42-rx7900xtx",
            "rpm",
            "rocm-hip",
            "6.3.1-7.fc42 installed",
        ),
        ("fedora-42-rx7900xtx", "rpm", "nvidia*", ""),
        (
            "arch-hybrid-laptop",
            "pacman",
            "mesa",
            "1:25.2.4-1 installed",
        ),
        (
            "kernel-gone-arch-laptop",
            "pacman",
            "linux",
            "6.17.5.arch1-1 installed",
        ),
    ] {
        let Some(facts) = facts(name, "") else {
            return;
        };
        let packages = facts.packages.got().expect(name);
        assert_eq!(packages.manager.as_deref(), Some(manager), "{name}");
        let view = View::new(&facts, &tables, &[]);
        let seen = match view.packages_matching(package) {
            Seen::Got(found) => format!("{} {}", found[0].1.version, found[0].1.state),
            Seen::Absent => String::new(),
            _ => "?".to_owned(),
        };
        assert_eq!(seen, expected, "{name} {package}");
    }
    let Some(half) = facts("amd-a17", "") else {
        return;
    };
    let view = View::new(&half, &tables, &[]);
    let state = view.package("amdgpu-dkms").map(|one| one.state.as_str());
    assert_eq!(state, Seen::Got("half-configured"));
    // rpm that failed says nothing.
    let failed = facts("fedora-42-rx7900xtx", "run rpm -qa rc=1\n").expect("the same machines");
    let view = View::new(&failed, &tables, &[]);
    assert!(view.package("nvidia-driver").is_unknown());
}

#[test]
fn units_of_recorded_machines() {
    let enabled = |name: &str, unit: &str| {
        let facts = facts(name, "")?;
        let services = facts.services.got().expect(name);
        Some(match &services.units[unit] {
            Seen::Got(unit) => unit.enabled_by.clone(),
            other => other.as_ref().map(|_| Vec::new()),
        })
    };
    let wants = |target: &str| Seen::Got(vec![format!("/etc/systemd/system/{target}.wants")]);
    for (name, unit, expected) in [
        ("nv-028", "nvidia-suspend.service", Seen::Absent),
        ("nv-028", "nvidia-hibernate.service", Seen::Absent),
        ("nv-028", "nvidia-resume.service", Seen::Absent),
        (
            "nv-020",
            "nvidia-fabricmanager.service",
            wants("multi-user.target"),
        ),
        (
            "ubuntu-22.04-a100x8",
            "nvidia-persistenced.service",
            wants("multi-user.target"),
        ),
    ] {
        let Some(seen) = enabled(name, unit) else {
            return;
        };
        assert_eq!(seen, expected, "{name} {unit}");
    }
}
