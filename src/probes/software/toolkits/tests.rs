use super::*;
use crate::host::archive::Archive;
use crate::host::machine::Entries;
use crate::host::redact::Redactor;
use crate::host::{Host, Options};
use crate::probes::tree::shared;

fn rocm(host: &Host) -> Installations<RocmInstall> {
    super::rocm(host, &Names::of(host))
}

fn cuda(host: &Host) -> (Installations<Seen<String>>, Seen<String>) {
    super::cuda(host, &Names::of(host))
}

fn parse(lines: &str) -> Entries {
    let text = format!("gpucheck-machine 1\nmade-by gpucheck 0.1.0 hand redacted\n{lines}");
    Entries::parse(text.leak()).expect("a machine")
}

fn host(entries: Entries) -> Host {
    let source = Box::new(Archive::new(entries));
    Host::new(source, Redactor::off(), Options::default())
}

/// A machine of which all is known; below `/opt`, `/usr` and `/usr/local` is what these lines say.
fn machine(lines: &str) -> Host {
    host(parse(&format!(
        "system linux x86_64 6.8.0\nenv whole\nwhole /opt/**\nwhole /usr/**\nwhole /lib/**\nwhole /lib64/**\n{lines}"
    )))
}

fn recorded(name: &str) -> Option<Host> {
    fn load(machines: &std::path::Path, name: &str) -> Entries {
        let path = machines.join(name).join("machine.txt");
        let entries =
            Entries::parse(std::fs::read_to_string(path).expect(name).leak()).expect(name);
        match entries.base() {
            Some(base) => Entries::overlay(load(machines, base), entries),
            None => entries,
        }
    }
    Some(host(load(&shared("machines")?, name)))
}

fn got(text: &str) -> Seen<String> {
    Seen::Got(text.to_owned())
}

fn targets(named: &Seen<Named<()>>) -> Vec<&str> {
    named.items().map(|(name, ())| name.as_str()).collect()
}

#[test]
fn cuda_versions() {
    assert_eq!(
        parse_cuda_json(r#"{ "cuda" : { "name" : "CUDA SDK", "version" : "12.8.1" } }"#),
        got("12.8.1")
    );
    for bad in [
        "",
        "{}",
        "[1]",
        r#"{"cuda":{"version":12}}"#,
        r#"{"cuda":{"version":"\u001b[0m"}}"#,
    ] {
        assert!(parse_cuda_json(bad).is_unknown(), "{bad}");
    }
    assert_eq!(parse_cuda_text("CUDA Version 10.2.89\n"), got("10.2.89"));
    assert!(parse_cuda_text("CUDA Version").is_unknown());
}

#[test]
fn rocm_versions() {
    assert_eq!(parse_rocm_version("7.2.1-112\n"), got("7.2.1"));
    assert_eq!(parse_rocm_version("10.0.0"), got("10.0.0"));
    assert!(parse_rocm_version("").is_unknown());
    assert!(parse_rocm_version("\u{fffd}").is_unknown());
    let header = "#define ROCM_VERSION_MAJOR   7\n#define ROCM_VERSION_MINOR   1\n#define ROCM_VERSION_PATCH   1\n";
    assert_eq!(parse_rocm_header(header), got("7.1.1"));
    assert!(parse_rocm_header("#define ROCM_VERSION_MAJOR x").is_unknown());
}

#[test]
fn versions_in_names_of_libraries() {
    for (names, version) in [
        // AMD's own builds.
        (
            &["libamdhip64.so.6", "libamdhip64.so.6.3.60301"][..],
            Some("6.3.1"),
        ),
        (&["libamdhip64.so.4.4.40500"], Some("4.5.0")),
        (&["libamdhip64.so.10.0.100000"], Some("10.0.0")),
        // Debian, Fedora and Arch: the third number is HIP's own.
        (&["libamdhip64.so.5.7.31921"], Some("5.7")),
        (
            &["libamdhip64.so.6.3.42134", "libhsa-runtime64.so.1.14.0"],
            Some("6.3"),
        ),
        (&["libamdhip64.so.7.1.52802-0"], Some("7.1")),
        (
            &["libamdhip64.so.7.1.52802", "librocm-core.so.1.0.70101"],
            Some("7.1.1"),
        ),
        (
            &["libhsa-runtime64.so.1", "libhsa-runtime64.so.1.15.60401"],
            Some("6.4.1"),
        ),
        // Before 5.0 HIP counted otherwise.
        (&["libamdhip64.so.4.2.21155"], None),
        (&["libamdhip64.so.6"], None),
        (&["libamdhip64.so.99999999999999999999.1.2"], None),
        (&[], None),
    ] {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let (found, source) = version_of_files("/x", &names);
        assert_eq!(found.as_deref(), version, "{names:?}");
        assert_eq!(source.is_some(), version.is_some(), "{names:?}");
    }
}

#[test]
fn targets_in_names_of_kernels() {
    for (name, targets) in [
        ("Kernels.so-000-gfx90a-xnack+.hsaco", &["gfx90a"][..]),
        ("Kernels.so-000-gfx1100.hsaco", &["gfx1100"]),
        ("TensileLibrary_lazy_gfx1100.dat", &["gfx1100"]),
        ("TensileLibrary_Type_HH_fallback_gfx942.hsaco", &["gfx942"]),
        ("TensileLibrary_gfx9-4-generic.co", &["gfx9-4-generic"]),
        ("TensileLibrary_lazy_gfx11-generic.dat", &["gfx11-generic"]),
        (
            "Kernels.so-000-gfx10-3-generic-xnack+.hsaco",
            &["gfx10-3-generic"],
        ),
        ("extop_gfx950.co", &["gfx950"]),
        ("gfx1201", &["gfx1201"]),
        ("hipblasltTransform.hsaco", &[]),
        ("TensileLibrary_Type_HH_fallback.dat", &[]),
        ("TensileManifest.txt", &[]),
        ("librocblas_gfx900.so", &[]),
        ("notgfx900.co", &[]),
        ("gfx.co", &[]),
        ("gfx9-.co", &[]),
        ("gfx9-4-generics.co", &[]),
        ("", &[]),
    ] {
        assert_eq!(gfx_targets(name), targets, "{name}");
    }
}

#[test]
fn rocm_of_recorded_machines() {
    let facts = |name: &str| {
        let host = recorded(name)?;
        Some(rocm(&host).into_got().expect(name))
    };
    let Some(server) = facts("ubuntu-24.04-mi300x8") else {
        return;
    };
    assert_eq!(server.keys().collect::<Vec<_>>(), ["/opt/rocm-6.4.1"]);
    let install = &server["/opt/rocm-6.4.1"];
    assert_eq!(install.version, got("6.4.1"));
    let source = "/opt/rocm-6.4.1/.info/version";
    assert_eq!(install.version_source.as_deref(), Some(source));
    assert_eq!(install.hip, got("libamdhip64.so.6.4.60401"));
    let known = ["gfx1100", "gfx90a", "gfx942"];
    assert_eq!(targets(&install.rocblas_targets), known);
    // Nothing says that no other file was there.
    assert!(!install.rocblas_targets.got().expect("targets").whole);

    let mini = facts("ubuntu-24.04-strix-halo").expect("a machine");
    let install = &mini["/opt/rocm-7.2.0"];
    assert_eq!(install.version, got("7.2.0"));
    assert_eq!(install.hip, got("libamdhip64.so.7.2.70200"));
    assert_eq!(targets(&install.rocblas_targets), ["gfx1100", "gfx1151"]);

    let desktop = facts("fedora-42-rx7900xtx").expect("a machine");
    assert_eq!(desktop.keys().collect::<Vec<_>>(), ["/usr"]);
    let install = &desktop["/usr"];
    assert_eq!(install.version, got("6.3"));
    let source = "/usr/lib64/libamdhip64.so.6.3.42134";
    assert_eq!(install.version_source.as_deref(), Some(source));
    assert_eq!(install.hip, got("libamdhip64.so.6.3.42134"));
    assert_eq!(install.rocblas_targets, Seen::Absent);

    let old = facts("amd-a04").expect("a machine");
    let targets_of_old = &old["/opt/rocm-5.7.1"].rocblas_targets;
    assert!(targets_of_old.got().expect("targets").whole);
    assert!(targets(targets_of_old).contains(&"gfx908"));
    assert!(targets_of_old.entry("gfx1036").is_absent());

    // Nobody looked into /opt.
    let other = recorded("ubuntu-24.04-rtx4090").expect("a machine");
    assert!(rocm(&other).is_unknown());
}

#[test]
fn layouts_of_rocm() {
    // The newer one: a folder that holds the installations, and links to the one in use.
    let host = machine(
        "link /opt/rocm/core -> core-10.0\nfile /opt/rocm/core-10.0/.info/version\n| 10.0.0\nfile /opt/rocm/core-7.14/.info/version\n| 7.14.0\nlink /opt/rocm/lib -> core-10.0/lib\nexists /opt/rocm/core-10.0/lib/libamdhip64.so.10\nexists /opt/rocm/extras-10/bin/x\nexists /opt/rocm/core-10.0/lib/rocblas/library/TensileLibrary_lazy_gfx1201.dat\nexists /opt/rocm/core-10.0/lib/hipblaslt/library/gfx1201/x\n",
    );
    let found = rocm(&host).into_got().expect("installations");
    let paths = ["/opt/rocm/core-10.0", "/opt/rocm/core-7.14"];
    assert_eq!(found.keys().collect::<Vec<_>>(), paths);
    let install = &found["/opt/rocm/core-10.0"];
    assert_eq!(install.version, got("10.0.0"));
    assert_eq!(install.hip, got("libamdhip64.so.10"));
    assert_eq!(targets(&install.rocblas_targets), ["gfx1201"]);
    assert_eq!(targets(&install.hipblaslt_targets), ["gfx1201"]);
    assert_eq!(found["/opt/rocm/core-7.14"].hip, Seen::Absent);

    // Arch: a folder that is the installation.
    let host = machine(
        "file /opt/rocm/.info/version\n| 7.2.0\nexists /opt/rocm/lib/libamdhip64.so.7.2.53211\n",
    );
    let found = rocm(&host).into_got().expect("an installation");
    assert_eq!(found.keys().collect::<Vec<_>>(), ["/opt/rocm"]);

    // Debian: kernels below the version of the library.
    let folder = "/usr/lib/x86_64-linux-gnu";
    let host = machine(&format!(
        "link {folder}/libamdhip64.so.5 -> libamdhip64.so.5.7.31921\nexists {folder}/libamdhip64.so.5.7.31921\nexists {folder}/rocblas/2.47.0/library/Kernels.so-000-gfx90a-xnack-.hsaco\n"
    ));
    let found = rocm(&host).into_got().expect("an installation");
    assert_eq!(found.keys().collect::<Vec<_>>(), ["/usr"]);
    assert_eq!(found["/usr"].version, got("5.7"));
    assert_eq!(targets(&found["/usr"].rocblas_targets), ["gfx90a"]);

    // No version file: the header, then the names.
    let host = machine(
        "exists /opt/rocm-6.3.1/lib/libamdhip64.so.6.3.60301\nfile /opt/rocm-6.2.0/include/rocm-core/rocm_version.h\n| #define ROCM_VERSION_MAJOR 6\n| #define ROCM_VERSION_MINOR 2\n| #define ROCM_VERSION_PATCH 0\n",
    );
    let found = rocm(&host).into_got().expect("installations");
    assert_eq!(found["/opt/rocm-6.3.1"].version, got("6.3.1"));
    assert_eq!(found["/opt/rocm-6.2.0"].version, got("6.2.0"));

    // One that a variable names counts where it is one.
    let host = machine(
        "env ROCM_PATH=/srv/rocm\nenv HIP_PATH=/srv/empty/hip\nwhole /srv/**\nfile /srv/rocm/.info/version\n| 6.4.0-1\nexists /srv/empty/hip/x\n",
    );
    let found = rocm(&host).into_got().expect("an installation");
    assert_eq!(found.keys().collect::<Vec<_>>(), ["/srv/rocm"]);
    assert_eq!(rocm(&machine("")), Seen::Absent);
}

#[test]
fn what_cannot_be_looked_at_is_no_proof() {
    let host = host(parse("env whole\nabsent /opt/rocm\nwhole /usr/**\n"));
    assert!(rocm(&host).is_unknown());
    let host = machine("error /opt/rocm link EACCES\nerror /opt/rocm list EACCES\n");
    assert!(rocm(&host).is_unknown());
    let lost = "error /opt/rocm-7.0.0/lib/rocblas/library list EIO\nfile /opt/rocm-7.0.0/.info/version\n| 7.0.0\n";
    let found = rocm(&machine(lost)).into_got().expect("an installation");
    assert!(found["/opt/rocm-7.0.0"].rocblas_targets.is_unknown());
    assert_eq!(found["/opt/rocm-7.0.0"].hipblaslt_targets, Seen::Absent);
}

#[test]
fn layouts_of_cuda() {
    let two = "file /usr/local/cuda-12.8/version.json\n| {\"cuda\":{\"version\":\"12.8.1\"}}\nexists /usr/local/cuda-12.8/bin/nvcc\nfile /usr/local/cuda-10.2/version.txt\n| CUDA Version 10.2.89\nlink /usr/local/cuda-12 -> cuda-12.8\nlink /usr/local/cuda -> cuda-12\nexists /usr/local/cuda-11.0/lib64/libcublas.so\n";
    let (found, nvcc) = cuda(&machine(&format!(
        "{two}env PATH=/usr/bin:/usr/local/cuda/bin:/usr/local/cuda-10.2/bin\n"
    )));
    let found = found.into_got().expect("toolkits");
    let paths = ["/usr/local/cuda-10.2", "/usr/local/cuda-12.8"];
    assert_eq!(found.keys().collect::<Vec<_>>(), paths);
    assert_eq!(found["/usr/local/cuda-12.8"], got("12.8.1"));
    assert_eq!(found["/usr/local/cuda-10.2"], got("10.2.89"));
    assert_eq!(nvcc, got("/usr/local/cuda-12.8"));

    // A folder before it that nobody looked into may have one.
    let (_, nvcc) = cuda(&machine(&format!(
        "{two}env PATH=/home/USER/bin:/usr/local/cuda/bin\n"
    )));
    assert!(nvcc.is_unknown());

    let folder = "/usr/lib/x86_64-linux-gnu";
    let debian = format!(
        "exists /usr/lib/cuda/bin/x\nexists /usr/bin/nvcc\nlink {folder}/libcudart.so.11.0 -> libcudart.so.11.8.89\nexists {folder}/libcudart.so.11.8.89\nenv PATH=/usr/local/bin:/usr/bin\n"
    );
    let (found, nvcc) = cuda(&machine(&debian));
    let found = found.into_got().expect("a toolkit");
    assert_eq!(found.keys().collect::<Vec<_>>(), ["/usr/lib/cuda"]);
    assert_eq!(found["/usr/lib/cuda"], got("11.8.89"));
    assert_eq!(nvcc, got("/usr/lib/cuda"));

    // The runtime alone is no toolkit, and a variable may name what is gone.
    let (found, nvcc) = cuda(&machine(&format!(
        "exists {folder}/libcudart.so.12.4.127\nenv CUDA_HOME=/usr/local/cuda-9\nenv PATH=/usr/bin\n"
    )));
    assert_eq!((found, nvcc), (Seen::Absent, Seen::Absent));

    let (found, _) = cuda(&machine(
        "env CUDA_PATH=/srv/cuda\nwhole /srv/**\nexists /srv/cuda/bin/nvcc\nexists /srv/cuda/lib64/libcudart.so.13.0.48\n",
    ));
    assert_eq!(
        found.into_got().expect("a toolkit")["/srv/cuda"],
        got("13.0.48")
    );
}

#[test]
fn a_replay_of_what_was_recorded_says_the_same() {
    let lines = "file /opt/rocm-7.0.0/.info/version\n| 7.0.0\nexists /opt/rocm-7.0.0/lib/libamdhip64.so.7.0.70000\nexists /opt/rocm-7.0.0/lib/rocblas/library/TensileLibrary_lazy_gfx1100.dat\nexists /opt/rocm-7.0.0/lib/rocblas/library/TensileLibrary_Type_HH_gfx1100.dat\nexists /opt/rocm-7.0.0/lib/rocblas/library/TensileLibrary_lazy_gfx942.dat\n";
    let first = machine(lines).recording();
    let facts = rocm(&first);
    let entries = first.take_entries();
    let recorded: String = entries.iter().map(|entry| format!("{entry}\n")).collect();
    assert!(recorded.contains("Type_HH_gfx1100"), "{recorded}");
    assert!(!recorded.contains("lazy_gfx1100"), "{recorded}");
    assert_eq!(rocm(&host(Entries::new(entries))), facts);
    let install = &facts.got().expect("an installation")["/opt/rocm-7.0.0"];
    assert!(install.rocblas_targets.entry("gfx1030").is_absent());

    // A folder that was listed for one thing and then for another.
    let lines = "exists /opt/rocm-7.0.1/lib/librocm-core.so.1.0.70001\nexists /opt/rocm-7.0.1/lib/libamdhip64.so.7\n";
    let first = machine(lines).recording();
    let facts = rocm(&first);
    let version = &facts.got().expect("an installation")["/opt/rocm-7.0.1"].version;
    assert_eq!(*version, got("7.0.1"));
    assert_eq!(rocm(&host(Entries::new(first.take_entries()))), facts);
}
