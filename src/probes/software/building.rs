//! What building with CUDA toolkits is bound to: limits in their headers, the host's compiler and the C library's headers.

use super::toolkits;
use super::{first_on_path, program_file, target};
use crate::facts::Seen;
use crate::facts::software::{CudaBuild, HostCompiler};
use crate::host::Host;

/// Where GCC keeps its parts, by the machine they compile for and the version: Debian's older and newer place and Arch's,
/// Fedora's, SUSE's.
const GCC_FOLDERS: &[&str] = &["/usr/lib/gcc", "/usr/libexec/gcc", "/usr/lib64/gcc"];
/// Most kinds of machines that GCC compiles for.
const LIMIT: usize = 64;
/// The file with which distributions name a compiler that their toolkit can work with.
const PROFILE: &str = "/etc/profile.d/cuda.sh";
/// Where Debian's toolkit has the compiler that fits it.
const DEBIAN_COMPILER: &str = "/usr/lib/nvidia-cuda-toolkit/bin";
/// Functions that newer C libraries declare otherwise than older toolkits.
const FUNCTIONS: &[&str] = &["rsqrt", "sinpi"];

/// The limits of one toolkit.
pub(super) fn of_toolkit(host: &Host, toolkit: &str) -> CudaBuild {
    let compiler = toolkits::compiler_of(toolkit);
    let beside = match compiler.rsplit_once('/') {
        Some(("/usr/bin", _)) => DEBIAN_COMPILER,
        Some((folder, _)) => folder,
        None => "",
    };
    let headers = include_folder(host, toolkit);
    let header = |name: &str| Some(format!("{}/crt/{name}", headers.got()?));
    let limits = header("host_config.h");
    CudaBuild {
        compiler: program_file(host, &compiler),
        newest_gcc: match &limits {
            Some(path) => host
                .lines(path, &|line| line.contains("__GNUC__ >"))
                .and_then(|lines| newest_gcc(&lines.lines, lines.whole)),
            None => headers.as_ref().and_then(|_| Seen::Absent),
        },
        plain_functions: match header("math_functions.h") {
            Some(path) => host
                .lines(&path, &|line| declared(line).is_some())
                .and_then(|lines| plain_functions(&lines.lines, lines.whole)),
            None => headers.as_ref().and_then(|_| Seen::Absent),
        },
        limits,
        own_compiler: Seen::first_of(["gcc", "g++"].iter().map(|name| {
            let path = format!("{beside}/{name}");
            program_file(host, &path)
        })),
    }
}

/// The folder of headers that holds those of the compiler.
fn include_folder(host: &Host, toolkit: &str) -> Seen<String> {
    let places = [
        format!("{toolkit}/include"),
        format!("{toolkit}/targets/x86_64-linux/include"),
        format!("{toolkit}/targets/sbsa-linux/include"),
        // Debian's toolkit has a folder of its own that holds none.
        "/usr/include".to_owned(),
    ];
    let of_debian = toolkits::compiler_of(toolkit).starts_with("/usr/bin/");
    let places = places
        .into_iter()
        .filter(|place| of_debian || place != "/usr/include");
    Seen::first_of(places.map(|place| {
        let header = format!("{place}/crt/host_config.h");
        target(host, &header).map(|_| place)
    }))
}

/// `#if __GNUC__ > 14`: the newest one that is let pass.
fn newest_gcc(lines: &[String], whole: bool) -> Seen<u32> {
    let limit = lines.iter().find_map(|line| {
        let limit = line.trim().strip_prefix("#if __GNUC__ > ")?;
        limit.trim().parse().ok()
    });
    match limit {
        Some(limit) => Seen::Got(limit),
        None if whole => Seen::Absent,
        None => Seen::default(),
    }
}

/// The function that a line declares, and what stands behind its arguments.
fn declared(line: &str) -> Option<(&'static str, &str)> {
    let declaration = line.strip_prefix("extern ")?;
    FUNCTIONS.iter().find_map(|name| {
        let (_, rest) = declaration.split_once(&format!(" {name}(double x)"))?;
        Some((*name, rest.trim()))
    })
}

/// Those that are declared without an exception specification.
fn plain_functions(lines: &[String], whole: bool) -> Seen<Vec<String>> {
    let declared: Vec<(&str, &str)> = lines.iter().filter_map(|line| declared(line)).collect();
    if declared.is_empty() {
        return if whole { Seen::Absent } else { Seen::default() };
    }
    let plain = declared.iter().filter(|(_, rest)| *rest == ";");
    let mut names: Vec<String> = plain.map(|(name, _)| (*name).to_owned()).collect();
    names.sort();
    names.dedup();
    Seen::Got(names)
}

/// The compiler that `nvcc` takes where nothing else is named.
pub(super) fn host_compiler(host: &Host) -> HostCompiler {
    HostCompiler {
        path: first_on_path(host, "gcc"),
        installed: installed(host),
        in_profile: host.text(PROFILE).and_then(|text| {
            let line = text
                .lines()
                .map(str::trim)
                .find(|line| line.contains("NVCC_CCBIN=") && !line.starts_with('#'));
            line.map_or(Seen::Absent, |line| Seen::Got(line.to_owned()))
        }),
        glibc: glibc(host),
    }
}

/// Majors of GCC whose C++ compiler is there.
fn installed(host: &Host) -> Seen<Vec<u32>> {
    let mut found: Vec<u32> = Vec::new();
    let mut unknown = None;
    for folder in GCC_FOLDERS {
        let kinds = match host.list(folder) {
            Seen::Got(listing) => listing.names,
            Seen::Absent => continue,
            other => {
                unknown.get_or_insert(other.map(|_| ()));
                continue;
            }
        };
        for kind in kinds.iter().take(LIMIT) {
            let versions = host.list(&format!("{folder}/{kind}"));
            for version in versions.into_got().unwrap_or_default().names {
                let major = version
                    .split('.')
                    .next()
                    .and_then(|major| major.parse().ok());
                let Some(major) = major else { continue };
                let compiler = format!("{folder}/{kind}/{version}/cc1plus");
                match target(host, &compiler) {
                    Seen::Got(_) => found.push(major),
                    Seen::Absent => {}
                    other => {
                        unknown.get_or_insert(other.map(|_| ()));
                    }
                }
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    match unknown {
        Some(why) => why.map(|()| Vec::new()),
        None if found.is_empty() => Seen::Absent,
        None => Seen::Got(found),
    }
}

/// `#define __GLIBC_MINOR__ 41`.
fn glibc(host: &Host) -> Seen<String> {
    let is_wanted = |line: &str| line.starts_with("#define") && line.contains("__GLIBC");
    let lines = host.lines("/usr/include/features.h", &is_wanted);
    lines.and_then(|lines| {
        let number = |wanted: &str| {
            lines.lines.iter().find_map(|line| {
                let mut words = line.split_whitespace().skip(1);
                let is_it = words.next() == Some(wanted);
                words.next()?.parse::<u32>().ok().filter(|_| is_it)
            })
        };
        match (number("__GLIBC__"), number("__GLIBC_MINOR__")) {
            (Some(major), Some(minor)) => Seen::Got(format!("{major}.{minor}")),
            _ => Seen::error("names no version of the C library"),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Options;
    use crate::probes::tree::Tree;

    const TOOLKIT: &str = "/usr/local/cuda-12.9";

    fn machine() -> Tree {
        let mut tree = Tree::proved();
        let header = |name: &str| format!("{TOOLKIT}/include/crt/{name}");
        tree.file(
            &header("host_config.h"),
            "#if defined(__GNUC__)\n#if __GNUC__ > 14\n\n#error -- unsupported GNU version!\n#endif /* __GNUC__ > 14 */\n",
        );
        tree.file(
            &header("math_functions.h"),
            "extern __DEVICE_FUNCTIONS_DECL__ __device_builtin__ double                 rsqrt(double x);\n \
             * - sinpi(x)\nextern __DEVICE_FUNCTIONS_DECL__ __device_builtin__ double  sinpi(double x) noexcept(true);\n\
             __func__(double rsqrt(double a));\n",
        );
        tree.file(
            "/usr/include/features.h",
            "#define\t__GLIBC__\t2\n#define\t__GLIBC_MINOR__\t41\n",
        );
        tree
    }

    #[test]
    fn headers_say_what_they_can_be_compiled_with() {
        let (host, _) = machine().host(Options::default());
        let build = of_toolkit(&host, TOOLKIT);
        assert_eq!(build.newest_gcc, Seen::Got(14));
        assert_eq!(build.plain_functions, Seen::Got(vec!["rsqrt".to_owned()]));
        assert!(build.own_compiler.is_absent());
        assert_eq!(host_compiler(&host).glibc, Seen::Got("2.41".to_owned()));
    }

    #[test]
    fn compilers_are_known_by_their_parts() {
        let mut tree = machine();
        tree.file("/usr/lib/gcc/x86_64-linux-gnu/13/cc1plus", "x");
        tree.file("/usr/libexec/gcc/x86_64-linux-gnu/14/cc1plus", "x");
        // The C compiler alone, and a folder of something else.
        tree.file("/usr/libexec/gcc/x86_64-linux-gnu/12/cc1", "x");
        tree.file("/usr/lib/gcc/x86_64-linux-gnu/plugin/cc1plus", "x");
        tree.file(
            "/etc/profile.d/cuda.sh",
            "export PATH\n# export NVCC_CCBIN=a\nexport NVCC_CCBIN=/usr/bin/g++-13\n",
        );
        let (host, _) = tree.host(Options::default());
        let compiler = host_compiler(&host);
        assert_eq!(compiler.installed, Seen::Got(vec![13, 14]));
        assert_eq!(
            compiler.in_profile,
            Seen::Got("export NVCC_CCBIN=/usr/bin/g++-13".to_owned())
        );
    }

    #[test]
    fn what_is_not_there_and_what_cannot_be_read() {
        let (host, _) = Tree::proved().host(Options::default());
        assert!(of_toolkit(&host, TOOLKIT).newest_gcc.is_absent());
        let compiler = host_compiler(&host);
        assert!(compiler.installed.is_absent() && compiler.glibc.is_absent());
        let (host, _) = Tree::default().host(Options::default());
        assert!(of_toolkit(&host, TOOLKIT).newest_gcc.is_unknown());
        let compiler = host_compiler(&host);
        assert!(compiler.installed.is_unknown() && compiler.glibc.is_unknown());
    }
}
