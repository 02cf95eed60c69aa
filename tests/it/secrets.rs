//! Private values that a machine holds: none of them may get into a report or a capture, unless the user asks for it.

use crate::common::{
    Folder, GPU, Ran, gpu, gpucheck, have, nvidia_tree_in, plain, root, run, skipped,
};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

const USER: &str = "alice.secret";
const OTHER: &str = "bob.hidden";
const HOST: &str = "quartz-lab-7731";
const GPU_UUID: &str = "7f3a91c2-5be4-4d07-9a68-c1d2e3f40516";
const DISK_UUID: &str = "b64e2d18-93fa-4c55-8e21-0a9b8c7d6e5f";
const BOOT_ID: &str = "c0ffee12-3456-4789-abcd-ef0123456789";
const MAC: &str = "a4:bb:6d:91:3e:7c";
const ADDRESS: &str = "10.77.31.4";
const TOKEN: &str = "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";
const AMD_ID: u64 = 0x8a3c_91d7_42be_605f;
const SERIALS: [&str; 4] = [
    "SN-90817263",
    "CZ-BOARD-5544",
    "CHASSIS-QQ11",
    "1fab2c3d-0000-4abc-8def-5a5b5c5d5e5f",
];

/// Every spelling in which a value would give itself away.
fn secrets() -> Vec<String> {
    let mut found: Vec<String> = [
        USER, OTHER, HOST, GPU_UUID, DISK_UUID, BOOT_ID, MAC, ADDRESS, TOKEN,
    ]
    .iter()
    .chain(&SERIALS)
    .map(|secret| (*secret).to_owned())
    .collect();
    found.push(GPU_UUID.replace('-', ""));
    found.push(GPU_UUID.to_uppercase());
    found.push(MAC.replace(':', "-"));
    found.push(MAC.replace(':', ""));
    found.push(HOST.replace('-', "--"));
    found.push(format!("{AMD_ID:016x}"));
    found.push(AMD_ID.to_string());
    found
}

/// A machine with an NVIDIA and an AMD GPU that is full of private values.
fn tree(root: Folder) -> Folder {
    let root = nvidia_tree_in(root);
    root.write(
        "etc/passwd",
        format!("root:x:0:0:root:/root:/bin/bash\n{USER}:x:1000:1000:Alice Secret:/home/{USER}:/bin/bash\n{OTHER}:x:1001:1001::/home/{OTHER}:/bin/bash\nnobody:x:65534:65534::/:/usr/sbin/nologin\n"),
    );
    root.write(
        "etc/group",
        format!("root:x:0:\nvideo:x:44:{OTHER}\nrender:x:109:{USER},{OTHER}\n{USER}:x:1000:\n"),
    );
    root.write("etc/hostname", format!("{HOST}\n"));
    root.write("etc/machine-id", "0123456789abcdef0123456789abcdef\n");
    root.write("etc/hosts", format!("127.0.1.1 {HOST}\n"));
    root.write("proc/sys/kernel/hostname", format!("{HOST}\n"));
    root.write("proc/sys/kernel/random/boot_id", format!("{BOOT_ID}\n"));
    root.write(
        "proc/version",
        format!("Linux version 6.8.0-49-generic ({USER}@{HOST}) (gcc)\n"),
    );
    root.write("proc/cmdline", cmdline());
    let volume = HOST.replace('-', "--");
    root.write("proc/self/mountinfo", format!("21 1 253:0 / /usr rw - ext4 /dev/mapper/{volume}--vg-usr rw\n22 1 8:1 / / rw - ext4 /dev/disk/by-uuid/{DISK_UUID} rw\n23 1 0:5 / /home/{USER} rw - nfs4 {HOST}:/export/{USER} rw,addr={ADDRESS}\n"));
    root.write("proc/1/cgroup", "0::/init.scope\n");
    root.write(
        &format!("proc/driver/nvidia/gpus/{GPU}/information"),
        format!("Model: \t\t NVIDIA GeForce RTX 4090\nGPU UUID: \t GPU-{GPU_UUID}\nBus Location: \t {GPU}\nDevice Minor: \t 0\n"),
    );
    for (name, text) in [
        ("product_serial", SERIALS[0]),
        ("board_serial", SERIALS[1]),
        ("chassis_serial", SERIALS[2]),
        ("product_uuid", SERIALS[3]),
        ("product_name", "Workstation 9"),
        ("sys_vendor", "Maker"),
        ("board_name", "Board 1"),
    ] {
        root.write(&format!("sys/class/dmi/id/{name}"), format!("{text}\n"));
    }
    // An AMD GPU with its unique id, in KFD as a decimal number.
    let amd = "0000:03:00.0";
    gpu(&root, amd, "amdgpu");
    let device = format!("sys/bus/pci/devices/{amd}");
    root.write(&format!("{device}/vendor"), "0x1002\n");
    root.write(&format!("{device}/device"), "0x744c\n");
    root.write(
        &format!("{device}/uevent"),
        format!("DRIVER=amdgpu\nPCI_CLASS=30000\nPCI_ID=1002:744C\nPCI_SLOT_NAME={amd}\n"),
    );
    root.write(&format!("{device}/unique_id"), format!("{AMD_ID:016x}\n"));
    root.write(
        &format!("{device}/serial_number"),
        format!("{}\n", SERIALS[0]),
    );
    root.write("sys/module/amdgpu/initstate", "live\n");
    root.write("sys/class/kfd/kfd/topology/nodes/1/gpu_id", "4711\n");
    root.write(
        "sys/class/kfd/kfd/topology/nodes/1/properties",
        format!("simd_count 192\nvendor_id 4098\ndevice_id 29772\nlocation_id 768\ndomain 0\ngfx_target_version 110000\nunique_id {AMD_ID}\ndrm_render_minor 128\n"),
    );
    root.write("etc/ld.so.conf", "include /etc/ld.so.conf.d/*.conf\n");
    root.write(
        "etc/ld.so.conf.d/own.conf",
        format!("/home/{USER}/cuda/lib64\n"),
    );
    root.write(
        "etc/modprobe.d/own.conf",
        format!("# {USER} wrote this on {HOST}\noptions nvidia NVreg_TemporaryFilePath=/home/{USER}/tmp\n"),
    );
    // A computer at the other end of a cable, and an adapter that is named by its address.
    root.write(
        "sys/bus/thunderbolt/devices/0-1/device_name",
        format!("{HOST}\n"),
    );
    root.write(&format!("sys/class/net/{}/mtu", adapter()), "1500\n");
    root.link("usr/local/cuda", &format!("/home/{USER}/cuda"));
    root.write(
        &format!("home/{USER}/cuda/version.json"),
        "{\"cuda\": {\"version\": \"12.4.1\"}}",
    );
    root.write(&format!("home/{USER}/cuda/lib64/libcudart.so.12.4.127"), "");
    root.write(&format!("home/{USER}/.ssh/id_rsa"), TOKEN);
    root
}

/// `enxa4bb6d913e7c`.
fn adapter() -> String {
    format!("enx{}", MAC.replace(':', ""))
}

fn cmdline() -> String {
    format!(
        "BOOT_IMAGE=/vmlinuz-6.8.0 root=UUID={DISK_UUID} ro quiet ip={ADDRESS}::192.0.2.1:255.255.255.0:{HOST}:eth0:none BOOTIF=01-{} \
         systemd.hostname={HOST} systemd.setenv=HF_TOKEN={TOKEN} nouveau.modeset=0\n",
        MAC.replace(':', "-"),
    )
}

const WAYS: [&[&str]; 8] = [
    &[],
    &["-v"],
    &["-q"],
    &["--format", "json"],
    &["--format", "json", "--facts"],
    &["--format", "markdown"],
    &["-v", "--color", "always"],
    &["capture"],
];

fn given_away(ran: &Ran) -> Vec<String> {
    let text = String::from_utf8_lossy(&ran.stdout).into_owned() + &ran.stderr;
    secrets()
        .into_iter()
        .filter(|secret| text.contains(secret.as_str()))
        .collect()
}

/// No way of looking tells anything private, in the order of `WAYS`; together they tell all of `told` when asked to.
fn check(what: &str, start: &dyn Fn(&[&str]) -> Ran, told: &[&str]) {
    let mut faults = Vec::new();
    let mut kept = BTreeSet::new();
    let mut others = false;
    for way in WAYS {
        let ran = start(way).good(what);
        for secret in given_away(&ran) {
            let text = String::from_utf8_lossy(&ran.stdout).into_owned();
            let line = text
                .lines()
                .find(|line| line.contains(&secret))
                .unwrap_or_default();
            faults.push(format!("{what} {way:?}: {secret} in {line}"));
        }
        let mut private = way.to_vec();
        private.push("--keep-private");
        let ran = start(&private).good(what);
        others |= String::from_utf8_lossy(&ran.stdout).contains(&format!("{OTHER}:x"));
        kept.extend(given_away(&ran));
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
    for secret in told {
        assert!(
            kept.contains(*secret),
            "{what}: {secret} is never read; {kept:?}"
        );
    }
    for serial in SERIALS {
        assert!(
            !kept.contains(serial),
            "{what}: {serial} is of no use and was read"
        );
    }
    // Names of others stand in the rows of groups; their own rows are nobody's business.
    assert!(!others, "{what}: the row of {OTHER} in /etc/passwd");
}

#[test]
fn of_a_folder() {
    let tree = tree(Folder::new());
    fs::create_dir_all(tree.path(&format!("dev/{HOST}-vg"))).expect("own folder");
    fs::create_dir_all(tree.path(&format!("opt/{USER}"))).expect("own folder");
    // The path of the root is private, too.
    let folder = tree.path(&format!("home/{USER}/../.."));
    let folder = folder.to_str().expect("UTF-8");
    let start = |way: &[&str]| {
        run(gpucheck()
            .args(way)
            .args(["--root", folder, "--user", USER]))
    };
    check(
        "a folder",
        &start,
        &[
            USER,
            GPU_UUID,
            DISK_UUID,
            TOKEN,
            ADDRESS,
            &AMD_ID.to_string(),
        ],
    );
}

#[test]
fn placeholders_still_tell_values_apart() {
    let tree = tree(Folder::new());
    let second = "0000:02:00.0";
    gpu(&tree, second, "nvidia");
    let other = GPU_UUID.replace("7f3a", "7f3b");
    tree.write(
        &format!("proc/driver/nvidia/gpus/{second}/information"),
        format!(
            "Model: \t\t NVIDIA GeForce RTX 4090\nGPU UUID: \t GPU-{other}\nDevice Minor: \t 1\n"
        ),
    );
    let report = run(gpucheck()
        .args(["--format", "json", "--facts", "--root"])
        .arg(&tree.0))
    .good("two")
    .json();
    let gpus = &report["facts"]["nvidia_proc"]["got"]["gpus"];
    let uuid = |address: &str| {
        let text = gpus["got"]["items"][address]["information"]["got"]["GPU UUID"].as_str();
        let text =
            text.or_else(|| gpus["items"][address]["information"]["got"]["GPU UUID"].as_str());
        text.unwrap_or_else(|| panic!("{gpus:#}")).to_owned()
    };
    assert_ne!(uuid(GPU), uuid(second));
    assert!(
        uuid(GPU).starts_with("GPU-") && uuid(GPU).len() == 40,
        "{}",
        uuid(GPU)
    );
}

#[test]
fn a_capture_may_be_captured_once_more() {
    // What is redacted stays as it is, and what is private in a machine that was kept private comes out again only there.
    let tree = tree(Folder::new());
    let capture = run(gpucheck().args(["capture", "--root"]).arg(&tree.0)).good("capture");
    let folder = Folder::new();
    let machine = folder.write("machine.txt", &capture.stdout);
    for way in [
        &["--format", "json", "--facts"][..],
        &["--format", "markdown"],
        &["-v"],
    ] {
        let ran = run(gpucheck().args(way).arg("--replay").arg(&machine)).good("replay");
        assert_eq!(given_away(&ran), Vec::<String>::new());
    }
}

#[test]
fn of_a_running_machine() {
    if !root() || !have(&["unshare", "setpriv", "hostname"]) {
        return;
    }
    let tree = tree(Folder::public());
    let program = tree.path("gpucheck");
    fs::copy(env!("CARGO_BIN_EXE_gpucheck"), &program).expect("a copy");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("own file");
    let script = "for name in sys etc/passwd etc/group proc/cmdline proc/sys/kernel/random/boot_id; do mount --bind \"$1/$name\" /$name; done; \
        hostname \"$2\"; cd /; tree=$1; shift 2; exec setpriv --reuid=1000 --regid=1000 --groups=109 -- \"$tree/gpucheck\" \"$@\"";
    let start = |way: &[&str]| {
        let mut command = Command::new("unshare");
        command
            .args(["-m", "-u", "sh", "-e", "-c", script, "sh"])
            .arg(&tree.0)
            .arg(HOST)
            .args(way);
        command
            .env("USER", USER)
            .env("LOGNAME", USER)
            .env("HOME", format!("/home/{USER}"));
        command.env("LD_LIBRARY_PATH", format!("/home/{USER}/cuda/lib64"));
        command.env("CUDA_VISIBLE_DEVICES", format!("GPU-{GPU_UUID}"));
        command.env("CUDA_HOME", format!("/home/{USER}/cuda"));
        command
            .env("NCCL_DEBUG", TOKEN)
            .env("HF_TOKEN", TOKEN)
            .env("OLLAMA_HOST", format!("{HOST}.example.org:11434"))
            .env("SSH_CONNECTION", ADDRESS);
        run(plain(&mut command))
    };
    let trial = start(&["--version"]);
    if trial.status != Some(0) {
        return skipped(&format!("nothing may be mounted here: {}", trial.stderr));
    }
    check("live", &start, &[USER, GPU_UUID, DISK_UUID, TOKEN]);
}
