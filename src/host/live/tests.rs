//! The door against files that a hostile or broken system may hold.

use super::super::files::{Files, Last, Problem};
use super::{Live, Root};
use crate::facts::{Failure, Seen, Why};
use crate::host::archive::Archive;
use crate::host::machine::Entries;
use crate::host::redact::Redactor;
use crate::host::{Host, LIST_LIMIT, Options, Source};
use rustix::fs::{CWD, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Says that something was not tested, which is a failure where everything is required.
fn skipped(why: &str) {
    assert!(
        std::env::var_os("GPUCHECK_REQUIRE_ALL").is_none(),
        "skipped: {why}"
    );
    // Past the harness, which keeps what a test prints to itself.
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}

/// A folder of its own for one test, removed with it.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("gpucheck-door-{}-{number}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Scratch(path)
    }

    /// With what proves every file system.
    fn system() -> Scratch {
        let scratch = Scratch::new();
        scratch.dir("sys/kernel");
        scratch.dir("usr/lib");
        scratch.file("proc/version", "Linux version 6.8.0\n");
        scratch.file("dev/null", "");
        scratch
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn dir(&self, name: &str) {
        fs::create_dir_all(self.path(name)).unwrap();
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), content).unwrap();
    }

    fn link(&self, name: &str, target: &str) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        symlink(target, self.path(name)).unwrap();
    }

    fn fifo(&self, name: &str) {
        rustix::fs::mknodat(CWD, self.path(name), FileType::Fifo, Mode::RWXU, 0).unwrap();
    }

    fn root(&self) -> Root {
        Root::open(&self.0).unwrap()
    }

    /// The path as the running system knows it.
    fn outside(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// Both ways to open files below this folder, by name.
    fn both_ways(&self) -> [(&'static str, Files); 2] {
        let open = || {
            rustix::fs::open(
                &self.0,
                OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
                Mode::empty(),
            )
            .unwrap()
        };
        [
            ("openat2", Files::below(open())),
            ("walk", Files::below_by_walk(open())),
        ]
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

fn text(source: &dyn Source, path: &str) -> Seen<String> {
    source.text(path, 1000).map(|(text, _)| text)
}

fn got(text: &str) -> Seen<String> {
    Seen::Got(text.to_owned())
}

#[test]
fn files_are_read_whole_or_to_the_limit() {
    let scratch = Scratch::system();
    scratch.file("etc/short", "12345");
    scratch.file("etc/exact", "1234567890");
    scratch.file("etc/long", "12345678901");
    scratch.file("etc/empty", "");
    scratch.file("etc/invalid", b"a\xff\xfeb\xe2\x82");
    for (source, prefix) in [
        (&scratch.root() as &dyn Source, String::new()),
        (&Live::new(), scratch.outside("")),
    ] {
        let read = |name: &str| source.text(&format!("{prefix}/etc/{name}"), 10);
        assert_eq!(read("short"), Seen::Got(("12345".to_owned(), true)));
        assert_eq!(read("exact"), Seen::Got(("1234567890".to_owned(), true)));
        assert_eq!(read("long"), Seen::Got(("12345678901".to_owned(), false)));
        assert_eq!(read("empty"), Seen::Got((String::new(), true)));
        assert_eq!(
            read("invalid"),
            Seen::Got(("a\u{fffd}\u{fffd}b\u{fffd}".to_owned(), true))
        );
        let bytes = source.bytes(&format!("{prefix}/etc/long"), 10);
        assert_eq!(bytes, Seen::Got(b"12345678901".to_vec()));
    }
}

#[test]
fn files_that_state_no_size_are_read_to_their_end() {
    let live = Live::new();
    assert!(
        matches!(text(&live, "/proc/version"), Seen::Got(version) if version.starts_with("Linux version"))
    );
    // A sysfs attribute states 4096 bytes.
    let random = text(&live, "/sys/kernel/uevent_seqnum");
    assert!(
        random
            .got()
            .is_none_or(|number| number.trim().parse::<u64>().is_ok()),
        "{random:?}"
    );
}

#[test]
fn only_regular_files_are_read_and_nothing_blocks() {
    let scratch = Scratch::system();
    scratch.dir("dir");
    scratch.fifo("fifo");
    scratch.link("to-fifo", "fifo");
    let _listener = UnixListener::bind(scratch.path("socket")).unwrap();
    let no_file = Seen::error("not a regular file");
    let start = Instant::now();
    for name in ["dir", "fifo", "to-fifo", "socket"] {
        assert_eq!(
            text(&scratch.root(), &format!("/{name}")),
            no_file,
            "{name}"
        );
        assert_eq!(
            text(&Live::new(), &scratch.outside(name)),
            no_file,
            "{name}"
        );
        assert_eq!(
            scratch
                .root()
                .modinfo(&format!("/{name}"))
                .map(|_| String::new()),
            no_file
        );
    }
    for path in ["/dev/null", "/dev/zero", "/dev", "/"] {
        assert_eq!(text(&Live::new(), path), no_file, "{path}");
    }
    // The link leads to the root's own file of that name, not to the endless device.
    scratch.link("endless", "/dev/zero");
    assert_eq!(text(&scratch.root(), "/endless"), Seen::Absent);
    scratch.file("dev/zero", "inside");
    assert_eq!(text(&scratch.root(), "/endless"), got("inside"));
    assert!(start.elapsed() < Duration::from_secs(20));
}

#[test]
fn an_endless_file_is_left_at_the_limit() {
    let scratch = Scratch::system();
    fs::File::create(scratch.path("huge"))
        .unwrap()
        .set_len(1 << 40)
        .unwrap();
    let start = Instant::now();
    let (text, whole) = scratch.root().text("/huge", 100_000).into_got().unwrap();
    assert_eq!((text.len(), whole), (100_001, false));
    assert!(scratch.root().modinfo("/huge").is_unknown());
    assert!(start.elapsed() < Duration::from_secs(20));
}

#[test]
fn no_link_leads_out_of_a_root() {
    let scratch = Scratch::new();
    scratch.file("outside/secret", "outside");
    scratch.file("secret", "outside");
    scratch.file("root/etc/secret", "inside");
    scratch.file("root/usr/lib/file", "");
    let root = Root::open(&scratch.path("root")).unwrap();
    let prefix = scratch.outside("");
    for (name, target) in [
        ("up", "../../../../../../../../secret".to_owned()),
        ("up-from-top", "/../../secret".to_owned()),
        ("absolute", format!("{prefix}/secret")),
        ("folder", format!("{prefix}/outside")),
        ("up-folder", "../outside".to_owned()),
        ("chain", "up".to_owned()),
        ("magic", "/proc/self/root".to_owned()),
    ] {
        scratch.link(&format!("root/{name}"), &target);
    }
    for path in [
        "/up",
        "/up-from-top",
        "/absolute",
        "/folder/secret",
        "/up-folder/secret",
        "/chain",
        "/../secret",
    ] {
        for (way, answer) in [
            ("text", text(&root, path)),
            ("real", root.real(path)),
            (
                "list",
                root.list(path).map(|listing| listing.names.join(" ")),
            ),
        ] {
            assert_eq!(answer, Seen::Absent, "{way} {path}");
        }
    }
    // A link in the middle of the path: neither the link nor the node behind it may be the outer one.
    assert_eq!(
        root.stat("/folder/secret").map(|stat| stat.kind),
        Seen::Absent
    );
    assert_eq!(root.link("/folder/secret"), Seen::Absent);
    scratch.link("root/inner", "/../etc/secret");
    assert_eq!(text(&root, "/inner"), got("inside"));
    assert_eq!(root.real("/inner"), got("/etc/secret"));
    assert_eq!(root.real("/etc/../../../etc//./secret"), got("/etc/secret"));
    assert_eq!(root.link("/inner"), got("/../etc/secret"));
    assert_eq!(root.stat("/inner").map(|stat| stat.kind), got("link"));
    assert_eq!(root.real("/"), got("/"));
    assert_eq!(root.real("/.."), got("/"));
}

#[test]
fn a_root_may_be_the_whole_system_and_still_follows_no_magic_link() {
    let root = Root::open(Path::new("/")).unwrap();
    assert!(text(&root, "/proc/version").got().is_some());
    assert!(text(&root, "/proc/self/root/proc/version").is_unknown());
}

#[test]
fn link_loops_are_errors() {
    let scratch = Scratch::system();
    scratch.link("one", "two");
    scratch.link("two", "one");
    scratch.link("self", "self/self");
    for index in 0..60 {
        scratch.link(&format!("chain{index}"), &format!("chain{}", index + 1));
    }
    scratch.file("chain60", "end");
    let eloop = Seen::Failed(Failure::errno("ELOOP"));
    for path in ["/one", "/self", "/one/x", "/chain0"] {
        assert_eq!(text(&scratch.root(), path), eloop, "{path}");
        assert_eq!(scratch.root().real(path), eloop, "{path}");
        assert_eq!(
            text(&Live::new(), &scratch.outside(&path[1..])),
            eloop,
            "{path}"
        );
    }
    assert_eq!(text(&scratch.root(), "/chain30"), got("end"));
    assert_eq!(scratch.root().link("/one"), got("two"));
}

#[test]
fn listings_are_sorted_and_bounded() {
    let scratch = Scratch::system();
    scratch.dir("many");
    for index in 0..100_000 {
        fs::File::create(scratch.path(&format!("many/{index:06}"))).unwrap();
    }
    for name in ["b", "a", "with\nnewline", "with\x1b[31mescape"] {
        scratch.file(&format!("few/{name}"), "");
    }
    fs::File::create(
        scratch
            .path("few")
            .join(std::ffi::OsStr::from_bytes(b"inv\xffalid")),
    )
    .unwrap();
    let root = scratch.root();
    let few = root.list("/few").into_got().unwrap();
    assert_eq!(
        few.names,
        [
            "a",
            "b",
            "inv\u{fffd}alid",
            "with\nnewline",
            "with\x1b[31mescape"
        ]
    );
    assert!(few.whole);
    let many = root.list("/many").into_got().unwrap();
    assert_eq!((many.names.len(), many.whole), (LIST_LIMIT, false));
    assert!(many.names.is_sorted());
    assert!(
        !Live::new()
            .list(&scratch.outside("many"))
            .into_got()
            .unwrap()
            .whole
    );
    scratch.dir("none");
    assert_eq!(
        root.list("/none")
            .map(|listing| (listing.names, listing.whole)),
        Seen::Got((vec![], true))
    );
    assert_eq!(
        root.list("/few/a").map(|listing| listing.names),
        Seen::error("not a directory")
    );
    assert_eq!(
        root.list("/few/a/b").map(|listing| listing.names),
        Seen::Absent
    );
}

#[test]
fn a_listing_is_whole_only_where_the_file_system_is_proved() {
    let scratch = Scratch::new();
    scratch.dir("sys/module/nvidia");
    assert!(!scratch.root().list("/sys/module").into_got().unwrap().whole);
    assert!(
        Live::new()
            .list(&scratch.outside("sys/module"))
            .into_got()
            .unwrap()
            .whole
    );
    scratch.dir("sys/kernel");
    assert!(scratch.root().list("/sys/module").into_got().unwrap().whole);
}

#[test]
fn absence_needs_proof_in_every_combination() {
    for bits in 0..16_u32 {
        let (sys, proc, dev, usr) = (bits & 1 != 0, bits & 2 != 0, bits & 4 != 0, bits & 8 != 0);
        let scratch = Scratch::new();
        for (there, name) in [(sys, "sys/kernel"), (usr, "usr/lib")] {
            if there {
                scratch.dir(name);
            }
        }
        for (there, name) in [(proc, "proc/version"), (dev, "dev/null")] {
            if there {
                scratch.file(name, "");
            }
        }
        scratch.file("file", "");
        let root = scratch.root();
        for (path, proved) in [
            ("/sys/module/nvidia", sys),
            ("/proc/driver/nvidia", proc),
            ("/dev/nvidia0", dev && sys && proc),
            ("/usr/bin/nvidia-smi", usr),
            ("/etc/os-release", usr),
            ("/file/below", usr),
            ("/sys/../etc/os-release", usr),
            ("/usr/../sys/module/nvidia", sys),
        ] {
            let expected = if proved {
                Seen::Absent
            } else {
                Seen::Unasked(Why::NotCaptured)
            };
            let expected_text: Seen<String> = expected.clone();
            assert_eq!(text(&root, path), expected_text, "text {path} {bits:04b}");
            assert_eq!(root.link(path), expected_text, "link {path} {bits:04b}");
            assert_eq!(root.real(path), expected_text, "real {path} {bits:04b}");
            assert_eq!(
                root.stat(path).map(|_| String::new()),
                expected_text,
                "stat {path} {bits:04b}"
            );
            assert_eq!(
                root.list(path).map(|_| String::new()),
                expected_text,
                "list {path} {bits:04b}"
            );
            assert_eq!(
                root.modinfo(path).map(|_| String::new()),
                expected_text,
                "modinfo {path} {bits:04b}"
            );
        }
    }
}

#[test]
fn both_ways_below_a_root_agree() {
    let scratch = Scratch::system();
    scratch.file("etc/file", "text");
    scratch.fifo("etc/fifo");
    scratch.link("etc/relative", "file");
    scratch.link("etc/absolute", "/etc/file");
    scratch.link("etc/dangling", "nowhere");
    scratch.link("etc/loop", "loop");
    scratch.link("etc/folder", "../usr");
    scratch.link("etc/folder-slash", "../usr/");
    scratch.link("etc/file-slash", "file/");
    scratch.link("etc/up", "../../../..");
    scratch.link("top", "/");
    let [(_, kernel), (_, walk)] = scratch.both_ways();
    let identity = |files: &Files, path: &str, last| {
        files
            .stat(path, last)
            .map(|stat| (stat.st_dev, stat.st_ino, stat.st_mode))
    };
    let bases = [
        "/",
        "/etc",
        "/etc/file",
        "/etc/fifo",
        "/etc/relative",
        "/etc/absolute",
        "/etc/dangling",
        "/etc/loop",
        "/etc/folder",
        "/etc/folder-slash",
        "/etc/file-slash",
        "/etc/up",
        "/top",
        "/nowhere",
        "/etc/nowhere",
        "",
        "etc",
    ];
    let ends = [
        "",
        "/",
        "/.",
        "/..",
        "/../etc/file",
        "/lib",
        "/file",
        "/etc/absolute",
        "/../../../top/top/etc/relative",
        "//etc//file",
    ];
    let mut found = 0;
    for base in bases {
        for end in ends {
            let path = format!("{base}{end}");
            for last in [Last::Followed, Last::Kept] {
                let expected = identity(&kernel, &path, last);
                assert_eq!(expected, identity(&walk, &path, last), "{path} {last:?}");
                found += u32::from(expected.is_ok());
            }
            assert_eq!(kernel.link(&path), walk.link(&path), "{path}");
            assert_eq!(kernel.real(&path), walk.real(&path), "{path}");
            assert_eq!(kernel.read(&path, 10), walk.read(&path, 10), "{path}");
            // What `real` says leads to the same place.
            if let Ok(real) = walk.real(&path) {
                assert_eq!(
                    identity(&kernel, &path, Last::Followed),
                    identity(&kernel, &real, Last::Kept)
                );
            }
        }
    }
    assert!(found > 100, "{found}");
    let long = format!("/{}", "x/".repeat(3000));
    assert_eq!(kernel.read(&long, 1), walk.read(&long, 1));
    let name = format!("/{}", "x".repeat(300));
    assert_eq!(walk.read(&name, 1), Err(Problem::Path(Errno::NAMETOOLONG)));
    assert_eq!(kernel.read("/etc/fi\0le", 1), walk.read("/etc/fi\0le", 1));
}

#[test]
fn stat_tells_kind_mode_and_owner() {
    let scratch = Scratch::system();
    scratch.file("etc/file", "text");
    fs::set_permissions(scratch.path("etc/file"), fs::Permissions::from_mode(0o4751)).unwrap();
    scratch.fifo("fifo");
    let _listener = UnixListener::bind(scratch.path("socket")).unwrap();
    let stat = scratch.root().stat("/etc/file").into_got().unwrap();
    let metadata = fs::metadata(scratch.path("etc/file")).unwrap();
    assert_eq!(
        (stat.kind.as_str(), stat.mode, stat.size),
        ("file", Some(0o4751), Some(4))
    );
    assert_eq!(
        (stat.uid, stat.gid),
        (Some(metadata.uid()), Some(metadata.gid()))
    );
    assert_eq!((stat.mtime, stat.device), (Some(metadata.mtime()), None));
    for (path, kind) in [("/fifo", "fifo"), ("/socket", "socket"), ("/etc", "dir")] {
        assert_eq!(scratch.root().stat(path).map(|stat| stat.kind), got(kind));
    }
    let null = Live::new().stat("/dev/null").into_got().unwrap();
    assert_eq!((null.kind.as_str(), null.device), ("char", Some((1, 3))));
}

#[test]
fn a_root_has_files_and_nothing_else() {
    let scratch = Scratch::system();
    let root = scratch.root();
    let unasked = Seen::Unasked(Why::NotCaptured);
    assert_eq!(root.open("/dev/null"), unasked);
    assert_eq!(root.access("/dev/null"), unasked);
    assert_eq!(root.env("PATH"), unasked);
    assert_eq!(root.acl("/dev/null").map(|_| String::new()), unasked);
    assert_eq!(root.user().map(|_| String::new()), unasked);
    assert_eq!(root.system().map(|_| String::new()), unasked);
    assert_eq!(root.answer("nvml").map(|_| String::new()), unasked);
    assert_eq!(root.clock(), None);
    assert!(!root.is_live());
    assert!(Root::open(&scratch.path("dev/null")).is_err());
    assert!(Root::open(&scratch.path("nowhere")).is_err());
}

#[test]
fn the_running_system_tells_who_asks() {
    let live = Live::new();
    let user = live.user().into_got().unwrap();
    assert!(user.groups.contains(&user.gid));
    assert!(user.groups.is_sorted());
    assert_eq!(user.name, None);
    let system = live.system().into_got().unwrap();
    assert_eq!(system.os, "linux");
    assert_eq!(system.machine, std::env::consts::ARCH);
    let release = text(&live, "/proc/sys/kernel/osrelease").map(|text| text.trim().to_owned());
    assert_eq!(release, Seen::Got(system.release));
    assert!(live.clock().unwrap().ends_with('Z'));
    assert!(live.env("PATH").got().is_some());
    assert_eq!(live.env("GPUCHECK_NEVER_SET"), Seen::Absent);
    assert!(live.is_live());
}

#[test]
fn nodes_are_opened_with_care() {
    let live = Live::new();
    assert_eq!(live.open("/dev/null"), got("ok"));
    assert_eq!(live.access("/dev/null"), got("ok"));
    assert_eq!(live.acl("/dev/null"), Seen::Absent);
    assert_eq!(live.open("/dev/nvidia0"), Seen::Unasked(Why::NotCaptured));
    assert_eq!(live.open("/dev/nvidia12"), Seen::Unasked(Why::NotCaptured));
    let scratch = Scratch::system();
    scratch.fifo("fifo");
    scratch.file("file", "");
    for name in ["fifo", "file", "dev"] {
        assert_eq!(
            live.open(&scratch.outside(name)),
            Seen::error("not a character device"),
            "{name}"
        );
    }
    assert_eq!(
        live.open("/dev/gpucheck-nothing"),
        live.access("/dev/gpucheck-nothing")
    );
    assert!(live.open("/dev/gpucheck-nothing").got().is_none());
    assert_eq!(live.access(&scratch.outside("file")), got("ok"));
}

#[test]
fn access_lists_read_as_getfacl_writes_them() {
    let entry = |tag: u16, bits: u16, id: u32| {
        [
            &tag.to_le_bytes()[..],
            &bits.to_le_bytes(),
            &id.to_le_bytes(),
        ]
        .concat()
    };
    let none = u32::MAX;
    let list = [
        2_u32.to_le_bytes().to_vec(),
        entry(0x01, 6, none),
        entry(0x02, 6, 1000),
        entry(0x04, 4, none),
        entry(0x08, 5, 44),
        entry(0x10, 7, none),
        entry(0x20, 0, none),
    ]
    .concat();
    let expected = [
        "user::rw-",
        "user:1000:rw-",
        "group::r--",
        "group:44:r-x",
        "mask::rwx",
        "other::---",
    ];
    assert_eq!(super::acl_entries(&list).unwrap(), expected);
    for length in 0..list.len() {
        let whole = length >= 4 && (length - 4) % 8 == 0;
        assert_eq!(
            super::acl_entries(&list[..length]).is_some(),
            whole,
            "{length}"
        );
    }
    assert_eq!(super::acl_entries(&[1, 0, 0, 0]), None);
    let unknown = [2_u32.to_le_bytes().to_vec(), entry(0x40, 6, none)].concat();
    assert_eq!(super::acl_entries(&unknown), None);
    // And through the kernel, where the file system has lists.
    let scratch = Scratch::new();
    scratch.file("file", "");
    match rustix::fs::setxattr(
        scratch.path("file"),
        "system.posix_acl_access",
        &list,
        rustix::fs::XattrFlags::empty(),
    ) {
        Ok(()) => assert_eq!(
            Live::new()
                .acl(&scratch.outside("file"))
                .got()
                .map(Vec::as_slice),
            Some(&expected.map(str::to_owned)[..])
        ),
        Err(errno) => skipped(&format!(
            "the kernel's part: no access lists here ({errno})"
        )),
    }
}

#[test]
fn the_user_behind_sudo_is_known() {
    let with = |variables: &[(&str, &str)]| {
        super::calling_user(
            |name| {
                variables
                    .iter()
                    .find(|(known, _)| *known == name)
                    .map(|(_, value)| (*value).to_owned())
            },
            || {
                let rows =
                    "root:x:0:0::/root:/bin/sh\nalice:x:1003:100::/home/alice:/bin/sh\nbroken\n";
                Some((rows.to_owned(), true))
            },
        )
    };
    assert_eq!(with(&[]), None);
    assert_eq!(with(&[("SUDO_UID", "1000")]), Some(1000));
    assert_eq!(with(&[("PKEXEC_UID", "1001")]), Some(1001));
    assert_eq!(with(&[("DOAS_USER", "alice")]), Some(1003));
    assert_eq!(with(&[("DOAS_USER", "broken")]), None);
    assert_eq!(with(&[("DOAS_USER", "1002")]), None);
    assert_eq!(
        with(&[("SUDO_UID", "nonsense"), ("PKEXEC_UID", "1001")]),
        Some(1001)
    );
    // root behind sudo is nobody else.
    assert_eq!(with(&[("SUDO_UID", "0")]), None);
    assert_eq!(with(&[("DOAS_USER", "root")]), None);
}

#[test]
fn a_node_whose_number_no_driver_has_is_not_opened() {
    let devices = "Character devices:\n  1 mem\n195 nvidia\n\nBlock devices:\n  7 loop\n";
    assert!(super::has_char_major(devices, 195));
    assert!(!super::has_char_major(devices, 7));
    assert!(!super::has_char_major(devices, 19));
    assert!(!super::has_char_major("", 0));

    // NVIDIA's control node, as it stays behind when the module is unloaded.
    let scratch = Scratch::new();
    let node = scratch.path("nvidiactl");
    let device = rustix::fs::makedev(195, 255);
    let mode = rustix::fs::Mode::from_raw_mode(0o666);
    let kind = rustix::fs::FileType::CharacterDevice;
    if let Err(errno) = rustix::fs::mknodat(rustix::fs::CWD, &node, kind, mode, device) {
        return skipped(&format!("no node can be made here ({errno})"));
    }
    let driver = fs::read_to_string("/proc/devices").unwrap();
    if !super::has_char_major(&driver, 195) {
        assert_eq!(
            Live::new().open(node.to_str().unwrap()),
            Seen::Unasked(Why::NoSuchHardware)
        );
    }
}

/// Refusals look the same to root as success, so this test runs itself once more as nobody.
#[test]
fn refusals_are_told_as_such() {
    const FOLDER: &str = "GPUCHECK_TEST_LOCKED_FOLDER";
    let name = "host::live::linux::tests::refusals_are_told_as_such";
    if let Ok(folder) = std::env::var(FOLDER) {
        refusals_below(&folder);
        return;
    }
    let scratch = Scratch::system();
    scratch.file("locked/file", "secret");
    scratch.file("unreadable", "secret");
    for name in ["locked", "unreadable"] {
        fs::set_permissions(scratch.path(name), fs::Permissions::from_mode(0o000)).unwrap();
    }
    if rustix::process::geteuid().is_root() {
        let child = std::process::Command::new("setpriv")
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .env(FOLDER, scratch.outside(""))
            .output();
        match child {
            Ok(output)
                if output.status.code() == Some(126) || output.status.code() == Some(127) =>
            {
                skipped("the test cannot be run as nobody here");
            }
            Ok(output) => assert!(
                output.status.success()
                    && String::from_utf8_lossy(&output.stdout).contains("1 passed"),
                "{output:?}"
            ),
            Err(error) => skipped(&format!("no setpriv ({error})")),
        }
    } else {
        refusals_below(&scratch.outside(""));
    }
    fs::set_permissions(scratch.path("locked"), fs::Permissions::from_mode(0o700)).unwrap();
}

fn refusals_below(folder: &str) {
    let root = Root::open(Path::new(folder)).unwrap();
    let live = Live::new();
    let denied = Seen::Failed(Failure::Denied {
        errno: "EACCES".to_owned(),
    });
    for name in ["unreadable", "locked/file", "locked/nowhere"] {
        assert_eq!(text(&root, &format!("/{name}")), denied, "{name}");
        assert_eq!(text(&live, &format!("{folder}/{name}")), denied, "{name}");
    }
    assert_eq!(root.list("/locked").map(|_| String::new()), denied);
    assert_eq!(root.link("/locked/file"), denied);
    assert_eq!(root.real("/locked/file"), denied);
    assert_eq!(root.stat("/locked/file").map(|_| String::new()), denied);
    assert_eq!(root.stat("/unreadable").map(|stat| stat.kind), got("file"));
    assert_eq!(live.access(&format!("{folder}/unreadable")), got("EACCES"));
}

/// A door that records, and one to what it recorded so far.
fn recorder(source: impl Source + 'static) -> Host {
    Host::new(Box::new(source), Redactor::off(), Options::default()).recording()
}

fn replayed(host: &Host) -> Host {
    let archive = Archive::new(Entries::new(host.take_entries()));
    recorder(archive)
}

#[test]
fn libraries_are_read_through_the_door_and_recorded() {
    let scratch = Scratch::system();
    let library = fs::canonicalize("/proc/self/exe").unwrap();
    let own = library.to_str().unwrap();
    scratch.file("usr/lib/libempty.so", "");
    scratch.file("usr/lib/libtext.so", "INPUT(libx.so)");
    scratch.dir("usr/lib/libfolder.so");
    scratch.fifo("usr/lib/libfifo.so");
    let live = recorder(Live::new());
    let elf = live.elf(own);
    assert_eq!(elf.got().map(|elf| elf.class), Some(usize::BITS));
    assert_eq!(replayed(&live).elf(own), elf);
    let root = recorder(scratch.root());
    let answers = |host: &Host| {
        ["empty", "text", "folder", "fifo", "nowhere"]
            .map(|name| host.elf(&format!("/usr/lib/lib{name}.so")))
    };
    let asked = answers(&root);
    assert_eq!(
        asked,
        [
            Seen::error("the file is empty"),
            Seen::error("not an ELF file"),
            Seen::error("not a regular file"),
            Seen::error("not a regular file"),
            Seen::Absent,
        ]
    );
    assert_eq!(answers(&replayed(&root)), asked);
}

#[test]
fn the_library_that_was_checked_is_the_one_that_is_loaded() {
    let scratch = Scratch::new();
    scratch.file("lib/checked.so", "");
    scratch.file("lib/other.so", "");
    scratch.link("lib/libcuda.so.1", "checked.so");
    let options = Options {
        library: Some(scratch.outside("lib/libcuda.so.1")),
        ..Options::default()
    };
    let host = Host::new(Box::new(Live::new()), Redactor::off(), options);
    let checked = fs::canonicalize(scratch.path("lib/checked.so")).unwrap();
    let way = host.way_to_library().into_got().expect("a file");
    // The root, every folder, the file: none of them is a link.
    assert_eq!(way.len(), checked.components().count());
    let kinds: Vec<String> = way
        .into_iter()
        .map(|stat| stat.into_got().expect("an answer").kind)
        .collect();
    assert!(kinds.ends_with(&["dir".to_owned(), "file".to_owned()]));
    assert!(!kinds.contains(&"link".to_owned()), "{kinds:?}");
    fs::remove_file(scratch.path("lib/libcuda.so.1")).unwrap();
    scratch.link("lib/libcuda.so.1", "other.so");
    let loaded = host.library_file().got().map(Path::new);
    assert_eq!(loaded, Some(checked.as_path()));
}

#[test]
fn the_cache_of_the_loader_is_recorded_as_text() {
    let live = recorder(Live::new());
    let wanted = |name: &str| name == "libc.so.6";
    let lines = live.loader_cache(&wanted);
    if lines.is_absent() {
        return skipped("no cache of a loader");
    }
    let count = lines.got().map_or(0, |lines| lines.lines.len());
    assert!(count > 0, "{lines:?}");
    let again = replayed(&live);
    assert_eq!(again.loader_cache(&wanted), lines);
    assert_eq!(again.take_entries().len(), 1);
    let scratch = Scratch::system();
    assert_eq!(recorder(scratch.root()).loader_cache(&wanted), Seen::Absent);
    scratch.file("etc/ld.so.cache", "libc.so.6 (libc6) => /lib/libc.so.6\n");
    let broken = recorder(scratch.root()).loader_cache(&wanted);
    assert!(matches!(broken, Seen::Failed(_)), "{broken:?}");
}

#[test]
fn programs_run_without_this_environment_and_as_nobody() {
    let live = recorder(Live::new());
    let all = |_: &str| true;
    let output = live.run(&["env"], &all).into_got().expect("env");
    assert_eq!(output.rc, 0);
    assert!(output.whole);
    assert_eq!(
        output.lines,
        [
            "LANG=C",
            "PATH=/usr/bin:/bin:/usr/sbin:/sbin:/run/current-system/sw/bin"
        ]
    );
    let id = live.run(&["id", "-u"], &all).into_got().expect("id");
    let uid = rustix::process::geteuid();
    let expected = if uid.is_root() { 65_534 } else { uid.as_raw() };
    assert_eq!(id.lines, [expected.to_string()]);
    let groups = live.run(&["id", "-G"], &all).into_got().expect("id");
    assert!(!uid.is_root() || groups.lines == ["65534"], "{groups:?}");

    let failed = live.run(&["false"], &all).into_got().expect("false");
    assert_eq!((failed.rc, failed.lines.len()), (1, 0));
    assert_eq!(live.run(&["no-such-program"], &all), Seen::Absent);

    let some = |line: &str| line.starts_with("LANG");
    let kept = live.run(&["env"], &some).into_got().expect("env");
    assert_eq!(kept.lines, ["LANG=C"]);
    // The first argument tells runs of one program apart, and the last run of a kind counts.
    let again = replayed(&live);
    assert_eq!(again.run(&["env"], &all), Seen::Got(kept));
    assert_eq!(again.run(&["id", "-u", "x"], &all), Seen::Got(id));
    assert_eq!(again.run(&["id"], &all), Seen::Unasked(Why::NotCaptured));
    assert_eq!(
        recorder(Scratch::system().root()).run(&["env"], &all),
        Seen::Unasked(Why::NotCaptured)
    );
}

#[test]
fn a_program_that_never_stops_printing_is_ended() {
    let live = recorder(Live::new());
    let start = Instant::now();
    let output = live.run(&["yes", "word"], &|_| true);
    assert!(start.elapsed() < Duration::from_secs(20));
    let output = output.into_got().expect("yes");
    assert!(!output.whole);
    assert!(output.lines.len() > 100_000);
    assert!(live.take_entries().is_empty());
}
