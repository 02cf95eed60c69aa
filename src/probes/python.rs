//! Fills `facts/python.rs`: the environments that this user's shell leads to, by their files. Nothing is run or imported.

use crate::facts::Seen;
use crate::facts::python::{Python, PythonEnvironment, Torch};
use crate::host::Host;
use std::collections::BTreeMap;

/// Most folders of `PATH`.
const LIMIT: usize = 64;
/// Variables that name an environment.
const VARIABLES: &[&str] = &["VIRTUAL_ENV", "CONDA_PREFIX"];
/// What is read of PyTorch's version file.
const WANTED: &[&str] = &["__version__", "cuda", "hip"];
/// The system's environment.
const SYSTEM: &str = "/usr";

/// Source `python`.
pub fn python(host: &Host) -> Seen<Python> {
    let first = first(host);
    let named = VARIABLES
        .iter()
        .filter_map(|name| host.env(name).into_got());
    let mut prefixes: Vec<String> = named
        .map(|path| path.trim_end_matches('/').to_owned())
        .filter(|path| path.starts_with('/'))
        .chain(first.got().cloned())
        .chain([SYSTEM.to_owned()])
        .collect();
    prefixes.sort();
    prefixes.dedup();
    let mut environments: BTreeMap<String, PythonEnvironment> = BTreeMap::new();
    for prefix in prefixes {
        if host.stat(&prefix).is_absent() {
            continue;
        }
        let interpreter = interpreter(host, &prefix);
        let folders = packages(&prefix, interpreter.got().map(String::as_str));
        environments.insert(prefix, environment(host, interpreter, &folders));
    }
    let of_system = environments.get(SYSTEM);
    let interpreter = of_system.map_or(Seen::Absent, |system| system.interpreter.clone());
    if let (Some(home), Some(name)) = (home(host), interpreter.got()) {
        let prefix = format!("{home}/.local");
        let folders = [format!("{prefix}/lib/{name}/site-packages")];
        if !host.stat(&folders[0]).is_absent() {
            environments.insert(prefix, environment(host, interpreter, &folders));
        }
    }
    Seen::Got(Python {
        environments,
        first,
    })
}

/// The home of the user who asks.
fn home(host: &Host) -> Option<String> {
    let user = host.user().into_got()?;
    match user.uid {
        0 => Some("/root".to_owned()),
        _ => Some(format!("/home/{}", user.name?)),
    }
}

/// The folder above the `bin` that holds the first `python3` of `PATH`.
fn first(host: &Host) -> Seen<String> {
    host.env("PATH").and_then(|path| {
        let folders = path.split(':').filter(|folder| folder.starts_with('/'));
        for folder in folders.take(LIMIT) {
            let folder = folder.trim_end_matches('/');
            match host.stat(&format!("{folder}/python3")) {
                Seen::Absent => {}
                Seen::Got(_) => {
                    let prefix = folder
                        .strip_suffix("/bin")
                        .or_else(|| folder.strip_suffix("/sbin"));
                    return match prefix {
                        Some("") => Seen::Got(SYSTEM.to_owned()),
                        Some(prefix) => Seen::Got(prefix.to_owned()),
                        // A starter of pyenv and the like: which interpreter it takes is decided elsewhere.
                        None => Seen::default(),
                    };
                }
                other => return other.map(|_| String::new()),
            }
        }
        Seen::Absent
    })
}

/// What the interpreter of an environment is called in the end: its version is part of the name.
fn interpreter(host: &Host, prefix: &str) -> Seen<String> {
    Seen::first_of(["python3", "python"].iter().map(|name| {
        let path = format!("{prefix}/bin/{name}");
        match host.stat(&path) {
            Seen::Absent => Seen::Absent,
            _ => host
                .real(&path)
                .map(|path| path.rsplit('/').next().unwrap_or_default().to_owned()),
        }
    }))
}

/// Where an environment has its packages. Debian's own do not stand below a version.
fn packages(prefix: &str, interpreter: Option<&str>) -> Vec<String> {
    let mut folders = Vec::new();
    let numbered = interpreter.filter(|name| name.starts_with("python3."));
    // In the order in which the interpreter looks.
    if let Some(name) = numbered {
        if prefix == SYSTEM {
            for local in ["lib64", "lib"] {
                folders.push(format!("/usr/local/{local}/{name}/site-packages"));
            }
            folders.push(format!("/usr/local/lib/{name}/dist-packages"));
            folders.push(format!("/usr/lib64/{name}/site-packages"));
        }
        folders.push(format!("{prefix}/lib/{name}/site-packages"));
    }
    if prefix == SYSTEM {
        folders.push("/usr/lib/python3/dist-packages".to_owned());
    }
    folders
}

fn environment(host: &Host, interpreter: Seen<String>, folders: &[String]) -> PythonEnvironment {
    let mut torch = Vec::new();
    let mut plugins: Vec<String> = Vec::new();
    let mut unknown: Option<Seen<()>> = None;
    match &interpreter {
        Seen::Got(name) if name.starts_with("python3.") => {}
        // Its packages stand in folders that are named otherwise.
        Seen::Got(_) => unknown = Some(Seen::default()),
        Seen::Absent => {}
        other => unknown = Some(other.as_ref().map(|_| ())),
    }
    for folder in folders {
        // Most of them are not there, and only what is needed is recorded of those that are.
        let listing = match host.stat(folder) {
            Seen::Absent => continue,
            _ => host.names(folder, |name| name == "torch" || is_jax_plugin(name)),
        };
        match listing {
            Seen::Got(listing) => {
                if listing.names.iter().any(|name| name == "torch") {
                    torch.push(torch_in(host, folder));
                }
                plugins.extend(listing.names.into_iter().filter(|name| is_jax_plugin(name)));
                if !listing.whole {
                    unknown.get_or_insert_default();
                }
            }
            Seen::Absent => {}
            other => {
                unknown.get_or_insert(other.map(|_| ()));
            }
        }
    }
    let none = || unknown.clone().unwrap_or(Seen::Absent);
    PythonEnvironment {
        interpreter,
        torch: match torch.into_iter().find(|torch| !torch.is_absent()) {
            Some(torch) => torch,
            None => none().and_then(|()| Seen::Absent),
        },
        jax_plugins: if plugins.is_empty() {
            none().and_then(|()| Seen::Absent)
        } else {
            plugins.sort();
            Seen::Got(plugins)
        },
    }
}

fn is_jax_plugin(name: &str) -> bool {
    name.starts_with("jax_cuda") && name.contains("_plugin-") && name.ends_with(".dist-info")
}

/// A folder without a version file holds something else of that name, or what was left when it was removed.
fn torch_in(host: &Host, folder: &str) -> Seen<Torch> {
    let path = format!("{folder}/torch/version.py");
    let is_wanted = |line: &str| WANTED.iter().any(|name| line.starts_with(name));
    host.lines(&path, &is_wanted).map(|lines| Torch {
        version: value(&lines.lines, "__version__"),
        cuda: value(&lines.lines, "cuda"),
        hip: value(&lines.lines, "hip"),
        path,
    })
}

/// `cuda: Optional[str] = '12.8'`; `Absent`: it is `None`.
fn value(lines: &[String], name: &str) -> Seen<String> {
    let value = lines.iter().find_map(|line| {
        let rest = line.strip_prefix(name)?;
        let (kind, value) = rest.split_once('=')?;
        (kind.trim().is_empty() || kind.starts_with(':')).then(|| value.trim())
    });
    match value {
        Some("None") => Seen::Absent,
        Some(value) => {
            let plain = value.trim_matches(['\'', '"']);
            let is_version = !plain.is_empty()
                && plain.len() <= 64
                && plain.bytes().all(|byte| byte.is_ascii_graphic());
            if is_version {
                Seen::Got(plain.to_owned())
            } else {
                Seen::error(format!("names no version as `{name}`"))
            }
        }
        None => Seen::error(format!("does not name `{name}`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Options;
    use crate::probes::tree::Tree;

    const VERSION: &str = "from typing import Optional\n\n__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip', 'xpu']\n\
        __version__ = '2.7.1+cu128'\ndebug = False\ncuda: Optional[str] = '12.8'\ngit_version = 'e2d1'\nhip: Optional[str] = None\n";

    #[test]
    fn the_version_file_of_torch() {
        let value = |text: &str, name: &str| {
            let lines: Vec<String> = text.lines().map(str::to_owned).collect();
            super::value(&lines, name)
        };
        assert_eq!(
            value(VERSION, "__version__"),
            Seen::Got("2.7.1+cu128".to_owned())
        );
        assert_eq!(value(VERSION, "cuda"), Seen::Got("12.8".to_owned()));
        assert_eq!(value(VERSION, "hip"), Seen::Absent);
        assert!(value(VERSION, "xpu").is_unknown());
        assert!(value("cuda = '1 2'", "cuda").is_unknown());
        assert!(value("cudart = '12'", "cuda").is_unknown());
    }

    #[test]
    fn the_system_has_its_packages_in_several_places() {
        let mut tree = Tree::proved();
        tree.file("/usr/bin/python3.12", "x");
        tree.link("/usr/bin/python3", "python3.12");
        tree.file(
            "/usr/local/lib/python3.12/dist-packages/torch/version.py",
            VERSION,
        );
        tree.file(
            "/usr/lib/python3/dist-packages/jax_cuda12_plugin-0.5.3.dist-info/METADATA",
            "",
        );
        tree.file("/usr/lib/python3/dist-packages/numpy/version.py", "");
        let (host, asked) = tree.host(Options::default());
        let python = python(&host).into_got().expect("an answer");
        let system = &python.environments["/usr"];
        let torch = system.torch.got().expect("torch");
        assert_eq!(torch.cuda, Seen::Got("12.8".to_owned()));
        assert!(torch.path.starts_with("/usr/local/lib/python3.12/"));
        assert_eq!(
            system.jax_plugins,
            Seen::Got(vec!["jax_cuda12_plugin-0.5.3.dist-info".to_owned()])
        );
        assert!(!asked.borrow().iter().any(|one| one.contains("numpy")));
    }

    #[test]
    fn the_first_torch_that_is_one_counts() {
        let mut tree = Tree::proved();
        tree.file("/usr/bin/python3.12", "x");
        tree.link("/usr/bin/python3", "python3.12");
        tree.file("/usr/local/lib/python3.12/dist-packages/torch/lib/left", "");
        let of_system = "/usr/lib/python3/dist-packages/torch/version.py";
        tree.file(of_system, VERSION);
        let (host, _) = tree.clone().host(Options::default());
        let seen = python(&host).into_got().expect("an answer");
        assert_eq!(
            seen.environments["/usr"].torch.got().expect("torch").path,
            of_system
        );
        let of_pip = "/usr/local/lib/python3.12/dist-packages/torch/version.py";
        tree.file(of_pip, VERSION);
        let (host, _) = tree.host(Options::default());
        let seen = python(&host).into_got().expect("an answer");
        assert_eq!(
            seen.environments["/usr"].torch.got().expect("torch").path,
            of_pip
        );
    }

    #[test]
    fn no_interpreter_and_one_of_another_kind() {
        let mut tree = Tree::proved();
        tree.file("/usr/bin/env", "x");
        let (host, _) = tree.host(Options::default());
        let python = python(&host).into_got().expect("an answer");
        assert!(python.environments["/usr"].torch.is_absent());
        // Another implementation, whose packages stand elsewhere.
        tree.file("/usr/bin/python3", "x");
        let (host, _) = tree.host(Options::default());
        let python = super::python(&host).into_got().expect("an answer");
        assert!(python.environments["/usr"].torch.is_unknown());
    }

    #[test]
    fn an_emptied_folder_is_no_torch() {
        let mut tree = Tree::proved();
        tree.file("/usr/bin/python3.12", "x");
        tree.link("/usr/bin/python3", "python3.12");
        tree.file("/usr/lib/python3.12/site-packages/torch/lib/left", "");
        let (host, _) = tree.host(Options::default());
        let python = python(&host).into_got().expect("an answer");
        assert!(python.environments["/usr"].torch.is_absent());
    }
}
