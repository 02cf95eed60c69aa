use super::*;
use crate::facts::software::Elf;
use crate::facts::{Seen, Why};
use crate::host::{Host, Listing, Options, Stat, System};

fn private() -> Private {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Private {
        user: Some("alicia".to_owned()),
        host: Some("zebra-7".to_owned()),
        home: Some("/home/alicia".to_owned()),
        people: names(&["bob", "render", "nvidia"]),
        system: names(&["root", "daemon", "ollama", "nobody"]),
    }
}

fn redactor() -> Redactor {
    Redactor::on(42, private())
}

fn with_user(user: &str, home: &str) -> Redactor {
    Redactor::on(
        42,
        Private {
            user: Some(user.to_owned()),
            home: Some(home.to_owned()),
            ..Private::default()
        },
    )
}

const UUID: &str = "5a1b2c3d-4e5f-6789-abcd-ef0123456789";

/// The placeholder of `UUID`.
fn placeholder() -> String {
    Salt(42).uuid(UUID).unwrap()
}

#[test]
fn off_changes_nothing() {
    let off = Redactor::off();
    assert_eq!(
        off.text("/etc/passwd", "a:x:1000:1000:b:/home/a:/bin/sh"),
        "a:x:1000:1000:b:/home/a:/bin/sh"
    );
    assert_eq!(off.variable("HF_TOKEN", "secret"), "secret");
    assert_eq!(off.path("/home/alicia"), "/home/alicia");
    assert_eq!(off.asked("/home/USER/x"), "/home/USER/x");
    assert!(!off.is_on());
}

#[test]
fn names_of_hosts_and_users_in_paths_are_found_by_their_place() {
    let redactor = redactor();
    let bob = redactor.name("bob");
    for (value, expected) in [
        (
            "/usr/bin:/data/zebra-7/bin",
            "/usr/bin:/data/HOST/bin".to_owned(),
        ),
        (
            "/opt/zebra-7.corp.example/cuda",
            "/opt/HOST.DOMAIN/cuda".to_owned(),
        ),
        ("/net/zebra-7:/x", "/net/HOST:/x".to_owned()),
        ("/opt/zebra-70/x", "/opt/zebra-70/x".to_owned()),
        ("/usr/share/zebra-7/x", "/usr/share/zebra-7/x".to_owned()),
        ("~bob/x:~/y", format!("~{bob}/x:~/y")),
        ("/media/bob/disk", format!("/media/{bob}/disk")),
        ("/media/usb", "/media/usb".to_owned()),
    ] {
        assert_eq!(redactor.variable("LD_LIBRARY_PATH", value), expected);
        assert_eq!(redactor.path(value), expected);
        // A capture of a capture.
        assert_eq!(redactor.variable("LD_LIBRARY_PATH", &expected), expected);
    }
    // Nobody told of these accounts.
    for value in [
        "~dave/x",
        "/nfs/users/henry/l",
        "/run/media/kim/d",
        "/media/judy/d",
    ] {
        let shown = redactor.path(value);
        assert!(shown.contains("USER-"), "{shown}");
        if value.starts_with('/') {
            assert_eq!(redactor.asked(&shown), value);
        }
    }
    let _ = redactor.path("/data/zebra-7/bin:/opt/zebra-7.corp/cuda");
    assert_eq!(redactor.asked("/data/HOST/bin"), "/data/zebra-7/bin");
    assert_eq!(
        redactor.asked("/opt/HOST.DOMAIN/cuda"),
        "/opt/zebra-7.corp/cuda"
    );
    let with_blank = with_user("leo smith", "/home/leo smith");
    assert_eq!(
        with_blank.variable("CUDA_HOME", "/home/leo smith/cuda"),
        "/home/USER/cuda"
    );
    assert_eq!(with_blank.asked("/home/USER/cuda"), "/home/leo smith/cuda");
}

#[test]
fn innocent_text_stays() {
    let redactor = redactor();
    for (path, text) in [
        (
            "/etc/os-release",
            "NAME=\"Ubuntu\"\nID=ubuntu\nVERSION_ID=\"24.04\"\n",
        ),
        (
            "/proc/driver/nvidia/gpus/0000:01:00.0/information",
            "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 186\nBus Location: \t 0000:01:00.0\nVideo BIOS: \t 96.00.30.00.01\n",
        ),
        (
            "/proc/driver/nvidia/gpus/0000:01:00.0/information",
            "GPU UUID: \t GPU-????????-????-????-????-????????????\n",
        ),
        ("/sys/bus/pci/devices/0000:01:00.0/device", "0x2684\n"),
        (
            "/proc/modules",
            "nvidia_uvm 1540096 4 - Live 0x0000000000000000 (POE)\n",
        ),
        ("/sys/module/nvidia/srcversion", "0123456789ABCDEF0123456\n"),
        (
            "/proc/cpuinfo",
            "model name\t: Intel(R) Core(TM) i5-6500 CPU @ 3.20GHz\n",
        ),
        ("/proc/meminfo", "MemTotal:       32768000 kB\n"),
        ("/proc/devices", "195 nvidia\n226 drm\n"),
        ("/etc/group", "render:x:109:\nvideo:x:44:\n"),
        (
            "/proc/version",
            "Linux version 6.8.0-49-generic #49~22.04.1-Ubuntu SMP PREEMPT_DYNAMIC Mon Nov 4 12:00:00 UTC 2024\n",
        ),
        (
            "/proc/cmdline",
            "BOOT_IMAGE=/boot/vmlinuz-5.10.0.1-generic root=/dev/mapper/ubuntu--vg-ubuntu--lv ro quiet splash nomodeset iommu=pt pci=realloc=off vfio-pci.ids=10de:2684,10de:22ba modprobe.blacklist=nouveau nvidia-drm.modeset=1 video=HDMI-A-1:1920x1080@60 crashkernel=384M-:128M vconsole.keymap=us memmap=4G$8G console=ttyS0,115200n8 ip=dhcp\n",
        ),
        (
            "/etc/modprobe.d/nvidia.conf",
            "options nvidia NVreg_RegistryDwords=\"PowerMizerEnable=0x1; PerfLevelSrc=0x2222\"\nblacklist nouveau\n",
        ),
        (
            "/usr/share/vulkan/icd.d/nvidia_icd.json",
            "{\"ICD\": {\"library_path\": \"libGLX_nvidia.so.0\", \"api_version\": \"1.3.277\"}}",
        ),
        (
            "/sys/class/kfd/kfd/topology/nodes/1/properties",
            "cpu_cores_count 0\nsimd_count 288\ngfx_target_version 90402\nlocation_id 768\nlocal_mem_size 206141652992\n",
        ),
        (
            "/var/lib/dpkg/status",
            "Package: libnvidia-compute-580\nVersion: 580.65.06-0ubuntu1\n",
        ),
        (
            "/usr/lib/wsl/drivers",
            "nv_dispi.inf_amd64_0d1a2b3c4d5e6f70",
        ),
        (
            "/proc/self/mountinfo",
            "24 30 0:22 / /proc rw,nosuid,nodev,noexec,relatime shared:13 - proc proc rw\n",
        ),
        (
            "/proc/self/mountinfo",
            "30 1 8:2 / / rw,relatime shared:1 - ext4 /dev/sda2 rw,errors=remount-ro\n",
        ),
        (
            "/etc/wsl.conf",
            "[boot]\nsystemd=true\n[user]\ndefault=root\n",
        ),
        (
            "/etc/systemd/system/ollama.service",
            "[Service]\nUser=ollama\nEnvironment=\"PATH=/usr/local/bin\"\nPrivateDevices=yes\n",
        ),
        ("/sys/class/dmi/id/board_serial", "None\n"),
        ("/sys/class/dmi/id/product_name", "PowerEdge XE9680\n"),
    ] {
        assert_eq!(redactor.text(path, text), text, "{path}");
    }
    for (name, value) in [
        (
            "PATH",
            "/usr/local/cuda-12.4.0.1/bin:/usr/bin:/opt/12.0.0.1/lib",
        ),
        (
            "LD_LIBRARY_PATH",
            "/opt/rocm-6.2.0/lib:/usr/lib/x86_64-linux-gnu",
        ),
        ("CUDA_VISIBLE_DEVICES", "0,1,2"),
        ("CUDA_VISIBLE_DEVICES", ""),
        ("NVIDIA_VISIBLE_DEVICES", "all"),
        ("NVIDIA_DRIVER_CAPABILITIES", "compute,utility"),
        ("HSA_OVERRIDE_GFX_VERSION", "10.3.0"),
        ("TORCH_CUDA_ARCH_LIST", "8.0;8.6;9.0+PTX"),
        ("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True"),
        ("HOME", "/root"),
        ("USER", "root"),
        ("XDG_SESSION_TYPE", "tty"),
    ] {
        assert_eq!(redactor.variable(name, value), value, "{name}");
    }
    for path in [
        "../../../bus/pci/drivers/nvidia",
        "/usr/lib/x86_64-linux-gnu/libcuda.so.580.65.06",
        "/home",
        "/home/",
        "/opt/render/x",
        "/home/linuxbrew/.linuxbrew/lib",
    ] {
        assert_eq!(redactor.path(path), path);
    }
}

#[test]
fn rows_of_people_lose_their_names() {
    let redactor = redactor();
    let bob = redactor.name("bob");
    assert!(bob.starts_with("USER-") && bob.len() == 9);
    assert_eq!(
        redactor.text(
            "/etc/passwd",
            "root:x:0:0:Charlie Root:/root:/bin/bash\n\
             ollama:x:998:998:Service of Alicia:/usr/share/ollama:/bin/false\n\
             alicia:x:1000:1000:Alicia Keen,,,:/home/alicia:/bin/zsh\n\
             bob:$6$hash:1001:1001:Bob:/data/bob:/bin/bash\n\
             nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n\
             broken row of alicia\n"
        ),
        format!(
            "root:x:0:0::/root:/bin/bash\n\
             ollama:x:998:998::/usr/share/ollama:/bin/false\n\
             USER:x:1000:1000::/home/USER:/bin/zsh\n\
             {bob}:x:1001:1001::/home/{bob}:/bin/bash\n\
             nobody:x:65534:65534::/nonexistent:/usr/sbin/nologin\n\
             REDACTED\n"
        )
    );
    assert_eq!(
        redactor.text(
            "/etc/group",
            "video:x:44:alicia,ollama,bob\nalicia:x:1000:\nnvidia:x:1002:\nrender:x:109:alicia\nresearch:x:2000:bob\n"
        ),
        format!(
            "video:x:44:USER,ollama,{bob}\nUSER:x:1000:\n{}:x:1002:\nrender:x:109:USER\nresearch:x:2000:{bob}\n",
            redactor.name("nvidia")
        )
    );
    assert_eq!(
        redactor.text("/etc/subuid", "alicia:100000:65536"),
        "USER:100000:65536"
    );
    let user = ProcessUser {
        uid: 1000,
        name: Some("alicia".to_owned()),
        ..ProcessUser::default()
    };
    assert_eq!(redactor.user(user).name.as_deref(), Some("USER"));
    assert_eq!(redactor.name("ollama"), "ollama");
    assert_eq!(redactor.name("1000"), "1000");
    // A service without a row, and a person of that name.
    assert_eq!(Redactor::on(1, Private::default()).name("ollama"), "ollama");
    let person = Private {
        people: BTreeSet::from(["plex".to_owned()]),
        ..Private::default()
    };
    assert!(Redactor::on(1, person).name("plex").starts_with("USER-"));
}

#[test]
fn home_folders_are_found_by_their_form() {
    let redactor = redactor();
    let bob = redactor.name("bob");
    for (path, expected) in [
        ("/home/alicia", "/home/USER".to_owned()),
        (
            "/home/alicia/.conda/envs/alicia/lib",
            "/home/USER/.conda/envs/USER/lib".to_owned(),
        ),
        ("/var/home/alicia/x", "/var/home/USER/x".to_owned()),
        ("/mnt/home/bob/x", format!("/mnt/home/{bob}/x")),
        ("/Users/alicia/x", "/Users/USER/x".to_owned()),
        ("/run/media/bob/disk", format!("/run/media/{bob}/disk")),
        ("/media/cdrom", "/media/cdrom".to_owned()),
        ("/scratch/alicia/env", "/scratch/USER/env".to_owned()),
        ("/scratch/alicia2/env", "/scratch/alicia2/env".to_owned()),
    ] {
        assert_eq!(redactor.path(path), expected);
    }
    assert_eq!(
        redactor.variable("LD_LIBRARY_PATH", "/home/alicia/lib:/home/bob/lib:/usr/lib"),
        format!("/home/USER/lib:/home/{bob}/lib:/usr/lib")
    );
    for (value, kept) in [
        (
            "/home/alicia/lib/libcuda.so.1 /opt/x/libtcmalloc.so.4",
            "/home/USER/lib/libcuda.so.1",
        ),
        ("/opt/x/libcudart.so.12:libnvidia-ml.so", "libnvidia-ml.so"),
        ("/home/alicia/secret.so", ""),
    ] {
        assert_eq!(redactor.variable("LD_PRELOAD", value), kept);
    }
    let path = redactor.variable("PATH", "/usr/bin:/mnt/c/Users/John Doe/AppData:/bin");
    assert!(!path.contains("John") && !path.contains("Doe"), "{path}");
    assert!(
        path.starts_with("/usr/bin:/mnt/c/Users/USER-") && path.ends_with("/AppData:/bin"),
        "{path}"
    );
    assert_eq!(redactor.variable("HOME", "/home/alicia"), "/home/USER");
    // A home elsewhere.
    let odd = with_user("alicia", "/data/people/ak17");
    assert_eq!(odd.variable("HOME", "/data/people/ak17"), "/home/USER");
    assert_eq!(odd.path("/data/people/ak17/lib"), "/home/USER/lib");
    assert_eq!(odd.path("/data/people/ak170/lib"), "/data/people/ak170/lib");
    assert_eq!(odd.asked("/home/USER/lib"), "/data/people/ak17/lib");
    // A user whose name means something else, or whose home belongs to the system.
    let common = with_user("nvidia", "/home/nvidia");
    assert_eq!(common.path("/opt/nvidia/lib"), "/opt/nvidia/lib");
    assert_eq!(common.path("/home/nvidia/lib"), "/home/USER/lib");
    assert_eq!(
        common.text("/x", "nvidia ubuntu render"),
        "nvidia ubuntu render"
    );
    let service = with_user("ollama", "/usr/share/ollama");
    assert_eq!(
        service.path("/usr/share/ollama/models"),
        "/usr/share/ollama/models"
    );
    assert_eq!(
        with_user("al", "/home/al").path("/opt/al/home/al"),
        "/opt/al/home/USER"
    );
}

#[test]
fn folders_of_people_are_found_in_texts() {
    let redactor = redactor();
    let bob = redactor.name("bob");
    for (path, text, seen) in [
        (
            "/etc/ld.so.cache",
            "libcuda.so.1 (libc6,x86-64) => /srv/alicia/cuda/libcuda.so.1",
            "libcuda.so.1 (libc6,x86-64) => /srv/USER/cuda/libcuda.so.1".to_owned(),
        ),
        (
            "/etc/ld.so.conf.d/x.conf",
            "/srv/alicia/cuda\n/data/bob\n/usr/local/bob/lib\n/usr/lib/bob/lib\n",
            format!("/srv/USER/cuda\n/data/{bob}\n/usr/local/{bob}/lib\n/usr/lib/bob/lib\n"),
        ),
        (
            "/etc/systemd/system/x.service",
            "EnvironmentFile=-/srv/alicia/x.env",
            "EnvironmentFile=-/srv/USER/x.env".to_owned(),
        ),
        (
            "/etc/systemd/system/x.service",
            "RootDirectory=/srv/bob",
            format!("RootDirectory=/srv/{bob}"),
        ),
        (
            "/etc/modprobe.d/x.conf",
            "options nvidia NVreg_TemporaryFilePath=/srv/alicia",
            "options nvidia NVreg_TemporaryFilePath=/srv/USER".to_owned(),
        ),
        (
            "/dev/kmsg",
            "traps: python[7] in /data/bob/venv",
            format!("traps: python[7] in /data/{bob}/venv"),
        ),
        // Others are called as folders are.
        (
            "/etc/ld.so.conf.d/x.conf",
            "/opt/nvidia/lib\n/srv/render/lib\n/srv/alicia2\n/srv/bobby\n",
            "/opt/nvidia/lib\n/srv/render/lib\n/srv/alicia2\n/srv/bobby\n".to_owned(),
        ),
    ] {
        assert_eq!(redactor.text(path, text), seen, "{path}");
        assert_eq!(redactor.text(path, &seen), seen, "{path}");
    }
    let answer =
        serde_json::json!({"library": "/srv/alicia/libnvidia-ml.so.1", "x": ["/data/bob/y"]});
    let seen = serde_json::json!({"library": "/srv/USER/libnvidia-ml.so.1", "x": [format!("/data/{bob}/y")]});
    assert_eq!(redactor.answer(answer), seen);
    for path in ["/srv/alicia/cuda", "/data/bob/cuda"] {
        assert_eq!(redactor.asked(&redactor.path(path)), path);
    }
}

#[test]
fn what_was_handed_out_may_be_asked_for() {
    let redactor = redactor();
    for path in [
        "/home/alicia/lib/libcuda.so",
        "/home/bob/x",
        "/var/home/alicia/x",
        "/scratch/alicia/env",
        "/home/carol/x",
        "/usr/lib",
    ] {
        let handed_out = redactor.path(path);
        assert_eq!(redactor.asked(&handed_out), path);
    }
    assert_eq!(redactor.asked("/home/USER-ffff/x"), "/home/USER-ffff/x");
    assert_eq!(
        Redactor::on(1, Private::default()).asked("/home/USER/x"),
        "/home/USER/x"
    );
    let names = vec![
        "alicia".to_owned(),
        "bob".to_owned(),
        "linuxbrew".to_owned(),
    ];
    let bob = redactor.name("bob");
    assert_eq!(
        redactor.names("/home", names.clone()),
        ["USER", bob.as_str(), "linuxbrew"]
    );
    assert_eq!(
        redactor.names("/opt", names.clone()),
        ["USER", bob.as_str(), "linuxbrew"]
    );
    assert_eq!(redactor.names("/etc", names.clone()), names);
    // Accounts that bear the names of products: the product is meant.
    let products = vec!["nvidia".to_owned(), "rocm".to_owned()];
    assert_eq!(redactor.names("/opt", products.clone()), products);
    let host = |name: &str| Private {
        host: Some(name.to_owned()),
        ..Private::default()
    };
    for (name, node) in [("kfd", "kfd"), ("uvm", "nvidia-uvm"), ("dri", "dri")] {
        let names = Redactor::on(1, host(name)).names("/dev", vec![node.to_owned()]);
        assert_eq!(names, [node], "a host called {name}");
    }
    let volumes = vec!["nvidiactl".to_owned(), "zebra-7-vg".to_owned()];
    assert_eq!(redactor.names("/dev", volumes), ["HOST-vg", "nvidiactl"]);
}

#[test]
fn the_command_line_keeps_what_matters() {
    let redactor = redactor();
    let check =
        |line: &str, expected: &str| assert_eq!(redactor.text("/proc/cmdline", line), expected);
    check(
        "ip=10.0.0.2::10.0.0.1:255.255.255.0:zebra-7:eth0:none quiet",
        "ip=REDACTED quiet",
    );
    check(
        "nfsroot=10.0.0.3:/srv/root,vers=4 rw",
        "nfsroot=REDACTED rw",
    );
    check("root=nfs:fileserver:/export ro", "root=nfs:REDACTED ro");
    check(
        "rd.iscsi.initiator=iqn.1994-05.com.example:zebra netroot=iscsi:@10.0.0.9::::iqn",
        "rd.iscsi.initiator=REDACTED netroot=REDACTED",
    );
    check(
        "BOOTIF=01-aa-bb-cc-dd-ee-ff ifname=eth0:aa:bb:cc:dd:ee:ff",
        "BOOTIF=REDACTED ifname=REDACTED",
    );
    check(
        "systemd.hostname=zebra-7 hostname=other",
        "systemd.hostname=HOST hostname=HOST",
    );
    check(
        "rd.luks.key=/keyfile rd.luks.uuid=0",
        "rd.luks.key=REDACTED rd.luks.uuid=0",
    );
    check(
        "systemd.setenv=HF_TOKEN=abc systemd.setenv=FOO=bar",
        "systemd.setenv=HF_TOKEN=REDACTED systemd.setenv=FOO=bar",
    );
    check(
        "systemd.set_credential=name:value",
        "systemd.set_credential=REDACTED",
    );
    check(
        "username=alicia user=ubuntu2",
        &format!("username=USER user={}", redactor.name("ubuntu2")),
    );
    check(
        "root=/dev/mapper/fedora_zebra--7-root rd.lvm.lv=fedora_zebra-7/root",
        "root=/dev/mapper/fedora_HOST-root rd.lvm.lv=fedora_HOST/root",
    );
    check(
        "ds=nocloud-net;s=http://10.1.2.3:8000/seed url=http://me:pw@boot.example/x",
        "ds=nocloud-net;s=http://192.0.2.1:8000/seed url=http://REDACTED@boot.example/x",
    );
    check(
        "dns=[fe80::1] two=2a02:8071::5",
        "dns=[2001:db8::1] two=2001:db8::1",
    );
    check(
        &format!("root=UUID={UUID} ro"),
        &format!("root=UUID={} ro", placeholder()),
    );
    check(
        &format!("root=PARTUUID={UUID} luks-{UUID}"),
        &format!("root=PARTUUID={0} luks-{0}", placeholder()),
    );
    let machine_id = UUID.replace('-', "");
    check(
        &format!("initrd=/{machine_id}/6.5/initrd"),
        &format!("initrd=/{}/6.5/initrd", placeholder().replace('-', "")),
    );
    check(
        "foo=\"a b password=c\" \"bar=x y\" quiet",
        "foo=\"a b password=REDACTED\" \"bar=x y\" quiet",
    );
    // Line ends and blanks stay where they are.
    check("  quiet   splash \n", "  quiet   splash \n");
    assert_eq!(
        redactor.text(
            "/etc/default/grub",
            "GRUB_TIMEOUT=0\nGRUB_CMDLINE_LINUX=\"quiet ip=10.0.0.2:zebra nomodeset\"\n"
        ),
        "GRUB_TIMEOUT=0\nGRUB_CMDLINE_LINUX=\"quiet ip=REDACTED nomodeset\"\n"
    );
    // A host whose name means something else.
    let common = Redactor::on(
        1,
        Private {
            host: Some("ubuntu".to_owned()),
            ..Private::default()
        },
    );
    let line = "root=/dev/mapper/ubuntu--vg-ubuntu--lv ro";
    assert_eq!(common.text("/proc/cmdline", line), line);
}

#[test]
fn one_value_has_one_placeholder_in_every_spelling() {
    let redactor = redactor();
    let whole = placeholder();
    let information = redactor.text(
        "/proc/driver/nvidia/gpus/0000:01:00.0/information",
        &format!("GPU UUID: \t GPU-{UUID}\n"),
    );
    assert_eq!(information, format!("GPU UUID: \t GPU-{whole}\n"));
    for (value, expected) in [
        (format!("GPU-{UUID}"), format!("GPU-{whole}")),
        (
            format!("GPU-{}", UUID.to_uppercase()),
            format!("GPU-{whole}"),
        ),
        (format!("MIG-{UUID},1"), format!("MIG-{whole},1")),
        (
            format!("MIG-GPU-{UUID}/1/0"),
            format!("MIG-GPU-{whole}/1/0"),
        ),
        (UUID.to_owned(), whole.clone()),
        ("GPU-".to_owned(), "GPU-".to_owned()),
        ("GPU-zz".to_owned(), "GPU-zz".to_owned()),
    ] {
        assert_eq!(
            redactor.variable("CUDA_VISIBLE_DEVICES", &value),
            expected,
            "{value}"
        );
    }
    for length in [1, 2, 4, 8, 13, 18, 23] {
        let short = redactor.variable("CUDA_VISIBLE_DEVICES", &format!("GPU-{}", &UUID[..length]));
        assert!(format!("GPU-{whole}").starts_with(&short), "{short}");
        assert!(!short.contains("5a1b"), "{short}");
    }
    // AMD: sysfs in hex, the kernel's topology in decimal, ROCm with a prefix.
    let id = 0x9f3c_5a1b_2d4e_6f70_u64;
    let hex = redactor.text(
        "/sys/class/drm/card0/device/unique_id",
        "9f3c5a1b2d4e6f70\n",
    );
    let hex = hex.trim();
    let decimal = u64::from_str_radix(hex, 16).unwrap();
    assert_ne!(decimal, id);
    assert_eq!(
        redactor.text("/sys/x/unique_id", "0x9f3c5a1b2d4e6f70\n"),
        format!("0x{hex}\n")
    );
    assert_eq!(
        redactor.text(
            "/sys/class/kfd/kfd/topology/nodes/1/properties",
            &format!("simd_count 4\nunique_id {id}\nhive_id {id}\n")
        ),
        format!("simd_count 4\nunique_id {decimal}\nhive_id {decimal}\n")
    );
    assert_eq!(
        redactor.text("/sys/x/xgmi_hive_info/xgmi_hive_id", &format!("{id}\n")),
        format!("{decimal}\n")
    );
    assert_eq!(
        redactor.variable("ROCR_VISIBLE_DEVICES", "GPU-9f3c5a1b2d4e6f70"),
        format!("GPU-{hex}")
    );
    let short = redactor.variable("ROCR_VISIBLE_DEVICES", "0,GPU-9f3c5a1b");
    assert!(format!("0,GPU-{hex}").starts_with(&short), "{short}");
    assert_eq!(
        redactor.text("/x", "agent GPU-9f3c5a1b2d4e6f70 found"),
        format!("agent GPU-{hex} found")
    );
    let answer = serde_json::json!({
        "devices": {"0000:01:00.0": {"uuid": {"got": format!("GPU-{UUID}")}, "serial": {"got": "1322621012345"}, "unique_id": id, "name": "H100", "memory_bytes": 85_899_345_920_u64}},
    });
    let answer = redactor.answer(answer);
    let device = &answer["devices"]["0000:01:00.0"];
    assert_eq!(device["uuid"]["got"], format!("GPU-{whole}"));
    assert_eq!(device["unique_id"], decimal);
    assert!(
        device["serial"]["got"]
            .as_str()
            .unwrap()
            .starts_with("SERIAL-")
    );
    assert_eq!(
        (&device["name"], &device["memory_bytes"]),
        (&"H100".into(), &85_899_345_920_u64.into())
    );
    // Another process with the same salt finds the same.
    assert_eq!(super::tests::redactor().text("/x", UUID), whole);
    assert_ne!(Redactor::on(43, private()).text("/x", UUID), whole);
}

#[test]
fn texts_lose_what_their_form_betrays() {
    let redactor = redactor();
    let check = |text: &str, expected: &str| assert_eq!(redactor.text("/proc/x", text), expected);
    check(
        "link/ether 52:54:00:ab:cd:ef brd",
        "link/ether 00:00:00:00:00:00 brd",
    );
    check("52:54:00:ab:cd:ef:00:11", "52:54:00:ab:cd:ef:00:11");
    check("=enx525400abcdef,ens1", "=enx000000000000,ens1");
    check(
        "enx525400abcdef0 xenx525400abcdef",
        "enx525400abcdef0 xenx525400abcdef",
    );
    check("(alicia@zebra-7) (gcc 13)", "(USER@HOST) (gcc 13)");
    check(
        "https://alicia:pw@proxy:3128/x",
        "https://REDACTED@proxy:3128/x",
    );
    check("https://proxy:3128/@x", "https://proxy:3128/@x");
    check("hf_token=abcdefghijklmnopqrstuvwx&x", "hf_token=REDACTED&x");
    check("token=short", "token=short");
    check(
        "/home/alicia/x (/home/bob)",
        &format!("/home/USER/x (/home/{})", redactor.name("bob")),
    );
    assert_eq!(
        redactor.text(
            "/proc/driver/nvidia/version",
            "NVRM version: 580.65.06  Release Build  (root@zebra-7)\n"
        ),
        "NVRM version: 580.65.06  Release Build  (root@HOST)\n"
    );
    assert_eq!(redactor.text("/etc/hostname", "zebra-7\n"), "HOST\n");
    assert_eq!(
        redactor.text("/proc/sys/kernel/random/boot_id", &format!("{UUID}\n")),
        format!("{}\n", placeholder())
    );
    assert_eq!(
        redactor.text("/etc/machine-id", &UUID.replace('-', "")),
        placeholder().replace('-', "")
    );
    assert_eq!(
        redactor.text("/etc/wsl.conf", "[user]\ndefault = alicia\n"),
        "[user]\ndefault =USER\n"
    );
    assert!(
        redactor
            .text("/proc/cpuinfo", "Serial\t\t: 10000000abcd1234\n")
            .starts_with("Serial\t\t: SERIAL-")
    );
    assert_eq!(
        redactor.text(
            "/etc/systemd/system/x.service",
            "User=alicia\nEnvironment=HF_TOKEN=x\n"
        ),
        "User=USER\nEnvironment=HF_TOKEN=REDACTED\n"
    );
    // `render` is a person here, too.
    let groups = redactor.text(
        "/etc/systemd/system/x.service",
        "Group=alicia\nSupplementaryGroups=render  bob video 109\n",
    );
    let bob = redactor.name("bob");
    assert_eq!(
        groups,
        format!("Group=USER\nSupplementaryGroups=render {bob} video 109\n")
    );
    assert_eq!(
        redactor.text(
            "/proc/self/mountinfo",
            "40 30 0:50 / /mnt/alicia rw - nfs4 filer:/vol/alicia rw,addr=10.0.0.1\n"
        ),
        "40 30 0:50 / /mnt/USER rw - nfs4 REDACTED REDACTED\n"
    );
    for (signer, expected) in [
        (
            "zebra-7 Secure Boot Module Signature key",
            "HOST Secure Boot Module Signature key",
        ),
        ("zebra-7-1733000000", "HOST-00000"),
        (
            "Canonical Ltd. Secure Boot Signing (2021 v3)",
            "Canonical Ltd. Secure Boot Signing (2021 v3)",
        ),
        ("DKMS module signing key", "DKMS module signing key"),
        ("Key of zebra-7", "Key of HOST"),
    ] {
        let info = ModInfo {
            signer: Some(signer.to_owned()),
            ..ModInfo::default()
        };
        assert_eq!(redactor.modinfo(info).signer.as_deref(), Some(expected));
    }
}

/// Secrets in every kind of file and variable: none of them may come through, and doing it again changes nothing.
#[test]
fn planted_secrets_do_not_come_through() {
    const SECRETS: [&str; 14] = [
        "alicia",
        "Keen",
        "bob",
        "carol",
        "zebra-7",
        "zebra--7",
        "10.20.30.40",
        "fe80::abcd",
        "52:54:00:ab:cd:ef",
        "5a1b2c3d",
        "9f3c5a1b",
        "11474483164812734320",
        "hunter2",
        "SN12345678",
    ];
    let id = "11474483164812734320";
    let texts = [
        ("/etc/passwd", "alicia:x:1000:1000:Alicia Keen:/home/alicia:/bin/sh\nbob:x:1001:1001:bob:/home/bob:/bin/sh\n+carol::::::\n".to_owned()),
        ("/etc/group", "video:x:44:alicia,bob,carol\nbob:x:1001:\n".to_owned()),
        ("/etc/subgid", "bob:1:2\n".to_owned()),
        ("/etc/hostname", "zebra-7\n".to_owned()),
        ("/proc/sys/kernel/hostname", "zebra-7".to_owned()),
        ("/etc/wsl.conf", "[user]\ndefault=alicia\n[network]\nhostname=zebra-7\n".to_owned()),
        ("/proc/version", "Linux version 6.8.0 (alicia@zebra-7) (gcc)\n".to_owned()),
        ("/proc/driver/nvidia/version", "NVRM version: x (bob@zebra-7)\n".to_owned()),
        ("/proc/driver/nvidia/gpus/0000:01:00.0/information", format!("GPU UUID: GPU-{UUID}\n")),
        ("/proc/sys/kernel/random/boot_id", format!("{UUID}\n")),
        ("/etc/machine-id", format!("{}\n", UUID.replace('-', ""))),
        ("/sys/class/dmi/id/product_uuid", UUID.to_uppercase()),
        ("/sys/class/dmi/id/product_serial", "SN12345678\n".to_owned()),
        ("/sys/class/dmi/id/chassis_asset_tag", "SN12345678".to_owned()),
        ("/sys/class/drm/card0/device/serial_number", "SN12345678\n".to_owned()),
        ("/sys/class/drm/card0/device/unique_id", "9f3c5a1b2d4e6f70\n".to_owned()),
        ("/sys/class/kfd/kfd/topology/nodes/1/properties", format!("unique_id {id}\nhive_id {id}\n")),
        ("/sys/class/drm/card0/device/xgmi_hive_info/xgmi_hive_id", format!("{id}\n")),
        ("/proc/cmdline", format!("root=UUID={UUID} ip=10.20.30.40::x:zebra-7 dns=10.20.30.40,fe80::abcd hostname=zebra-7 rd.lvm.lv=zebra-7/root rd.luks.key=hunter2 a.password=hunter2 mac=52:54:00:ab:cd:ef systemd.setenv=A_TOKEN=hunter2 x=/home/alicia/y user=carol")),
        ("/boot/loader/entries/x.conf", format!("options root=PARTUUID={UUID} hostname=zebra-7\n")),
        ("/etc/default/grub", "GRUB_CMDLINE_LINUX=\"nfsroot=10.20.30.40:/x password=hunter2\"\n".to_owned()),
        ("/proc/self/mountinfo", "1 2 0:1 / /home/alicia rw - cifs //zebra-7/x rw,username=bob,addr=10.20.30.40\n".to_owned()),
        ("/etc/systemd/system/x.service", "User=carol\nEnvironment=API_KEY=hunter2\n".to_owned()),
        ("/etc/modprobe.d/x.conf", "# /home/alicia/notes, see https://bob:hunter2@example.org\n".to_owned()),
        ("/proc/1/cgroup", format!("0::/kubepods/pod{UUID}/9f3c5a1b2d4e6f709f3c5a1b2d4e6f70\n")),
        ("/proc/self/mountinfo", "1 2 0:1 / / rw - ext4 /dev/mapper/zebra--7--vg-root rw\n".to_owned()),
        ("/etc/ld.so.conf.d/x.conf", "/home/alicia/lib\n/var/home/carol/lib\n/Users/bob/lib\n".to_owned()),
    ];
    let variables = [
        ("HOME", "/home/alicia"),
        ("USER", "alicia"),
        ("LOGNAME", "bob"),
        ("HOSTNAME", "zebra-7"),
        ("PATH", "/home/alicia/bin:/scratch/alicia/bin:/home/carol/x"),
        ("HF_TOKEN", "hunter2"),
        ("NGC_API_KEY", "hunter2"),
        ("MY_SECRET_VALUE", "hunter2"),
        ("DB_PASSWORD", "hunter2"),
        ("HTTPS_PROXY", "http://bob:hunter2@10.20.30.40:3128"),
        ("SSH_CONNECTION", "10.20.30.40 50000 fe80::abcd 22"),
        ("OLLAMA_HOST", "zebra-7.example.org:11434"),
        ("KUBERNETES_SERVICE_HOST", "10.20.30.40"),
        ("MASTER_ADDR", "10.20.30.40"),
        (
            "CUDA_VISIBLE_DEVICES",
            "GPU-5a1b2c3d-4e5f-6789-abcd-ef0123456789,GPU-5a1b2c3d",
        ),
        ("ROCR_VISIBLE_DEVICES", "GPU-9f3c5a1b2d4e6f70,GPU-9f3c5a1b"),
    ];
    let redactor = redactor();
    let other = Redactor::on(7, private());
    let mut planted = BTreeSet::new();
    let mut judge = |before: &str, after: &str, again: &str, elsewhere: &str, place: &str| {
        for secret in SECRETS {
            if before.to_lowercase().contains(&secret.to_lowercase()) {
                planted.insert(secret);
            }
            assert!(
                !after.to_lowercase().contains(&secret.to_lowercase()),
                "{secret} in {place}: {after}"
            );
        }
        assert_eq!(after, again, "{place}");
        assert_eq!(after, elsewhere, "{place}");
    };
    for (path, text) in &texts {
        let after = redactor.text(path, text);
        judge(
            text,
            &after,
            &redactor.text(path, &after),
            &other.text(path, &after),
            path,
        );
    }
    for (name, value) in variables {
        let after = redactor.variable(name, value);
        judge(
            value,
            &after,
            &redactor.variable(name, &after),
            &other.variable(name, &after),
            name,
        );
    }
    for path in ["/home/alicia/x", "/var/home/carol", "/run/media/bob/disk"] {
        let after = redactor.path(path);
        judge(
            path,
            &after,
            &redactor.path(&after),
            &other.path(&after),
            path,
        );
    }
    assert_eq!(planted.len(), SECRETS.len(), "{planted:?}");
}

#[test]
fn container_ids_go_and_the_engine_stays() {
    let hex = "9f3c5a1b".repeat(8);
    for (line, expected) in [
        (format!("0::/docker/{hex}"), "0::/docker/REDACTED"),
        (
            format!("0::/system.slice/docker-{hex}.scope"),
            "0::/system.slice/docker-REDACTED.scope",
        ),
        (
            format!("0::/machine.slice/libpod-{hex}.scope/container"),
            "0::/machine.slice/libpod-REDACTED.scope/container",
        ),
        (
            format!("0::/kubepods-pod{}.slice", UUID.replace('-', "_")),
            "0::/kubepods-podREDACTED.slice",
        ),
        (
            "0::/lxc.payload.deadbeef".to_owned(),
            "0::/lxc.payload.deadbeef",
        ),
    ] {
        assert_eq!(redactor().text("/proc/1/cgroup", &line), expected);
    }
}

#[test]
fn long_words_take_no_square_of_time() {
    let redactor = redactor();
    let start = std::time::Instant::now();
    for piece in [
        "a", "a.", "(", "a(", "hf_", "a:", "a ", "://", "\"", "/home/", "GPU-",
    ] {
        let text = piece.repeat((128 << 10) / piece.len());
        for path in ["/proc/cmdline", "/x", "/proc/1/cgroup"] {
            redactor.text(path, &text);
        }
    }
    // Without optimisation a hundredth of what the square takes.
    assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
}

#[test]
fn hostile_text_does_no_harm() {
    let redactor = redactor();
    let pieces = [
        "\u{fffd}", "é", "GPU-", "MIG-", "(", "@", ")", "://", "/home/", "/Users/", "=", "\"", "'",
        ":", "-", "5a1b2c3d", "0", "\0", "\n", " ", "\x1b[31m", "token=",
    ];
    let mut state = 1_usize;
    for _ in 0..2000 {
        let mut text = String::new();
        for _ in 0..12 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            text.push_str(pieces[(state >> 33) % pieces.len()]);
        }
        for path in [
            "/etc/passwd",
            "/etc/group",
            "/proc/cmdline",
            "/x/unique_id",
            "/x/properties",
            "/x/boot_id",
            "/proc/1/cgroup",
            "/proc/self/mountinfo",
            "/x/serial",
            "/x/systemd/y",
            "/x/wsl.conf",
            "/x",
        ] {
            let once = redactor.text(path, &text);
            assert_eq!(redactor.text(path, &once), once, "{path} {text:?}");
        }
        for name in [
            "USER",
            "PATH",
            "CUDA_VISIBLE_DEVICES",
            "ROCR_VISIBLE_DEVICES",
            "SSH_CONNECTION",
        ] {
            let once = redactor.variable(name, &text);
            assert_eq!(redactor.variable(name, &once), once, "{name} {text:?}");
        }
        let _ = redactor.asked(&text);
        let _ = redactor.path(&text);
    }
}

/// A source with a few files.
struct Few;

impl Source for Few {
    fn bytes(&self, path: &str, limit: usize) -> Seen<Vec<u8>> {
        self.text(path, limit).map(|(text, _)| text.into_bytes())
    }
    fn text(&self, path: &str, _limit: usize) -> Seen<(String, bool)> {
        let text = match path {
            "/etc/passwd" => {
                "root:x:0:0::/root:/bin/sh\nalicia:x:1000:1000::/home/alicia:/bin/sh\nbob:x:1001:1001::/home/bob:/bin/sh\nollama:x:998:998::/x:/bin/false\n"
            }
            "/etc/hostname" => "zebra-7.example.org\n",
            "/etc/machine-id" => "0123456789abcdef0123456789abcdef\n",
            "/home/alicia/file" => "inside",
            _ => return Seen::Absent,
        };
        Seen::Got((text.to_owned(), true))
    }
    fn list(&self, _path: &str) -> Seen<Listing> {
        Seen::Got(Listing {
            names: vec!["alicia".to_owned(), "bob".to_owned()],
            whole: true,
            kept: false,
        })
    }
    fn link(&self, _path: &str) -> Seen<String> {
        Seen::Got("/home/alicia/file".to_owned())
    }
    fn real(&self, path: &str) -> Seen<String> {
        Seen::Got(path.to_owned())
    }
    fn stat(&self, _path: &str) -> Seen<Stat> {
        Seen::Absent
    }
    fn open(&self, path: &str) -> Seen<String> {
        Seen::Got(path.to_owned())
    }
    fn access(&self, path: &str) -> Seen<String> {
        Seen::Got(path.to_owned())
    }
    fn acl(&self, _path: &str) -> Seen<Vec<String>> {
        Seen::Absent
    }
    fn modinfo(&self, _path: &str) -> Seen<ModInfo> {
        Seen::Got(ModInfo {
            signer: Some("zebra-7 Secure Boot Module Signature key".to_owned()),
            ..ModInfo::default()
        })
    }
    fn elf(&self, _: &str) -> Seen<Elf> {
        Seen::default()
    }
    fn env(&self, name: &str) -> Seen<String> {
        if name == "HOME" {
            Seen::Got("/home/alicia".to_owned())
        } else {
            Seen::Absent
        }
    }
    fn user(&self) -> Seen<ProcessUser> {
        Seen::Got(ProcessUser {
            uid: 0,
            sudo_uid: Some(1000),
            ..ProcessUser::default()
        })
    }
    fn system(&self) -> Seen<System> {
        Seen::Unasked(Why::NotCaptured)
    }
    fn clock(&self) -> Option<String> {
        None
    }
    fn answer(&self, _library: &str) -> Seen<Value> {
        Seen::Absent
    }
    fn is_live(&self) -> bool {
        true
    }
}

#[test]
fn a_source_tells_what_is_private() {
    let private = Private::of(&Few);
    assert_eq!(private.user.as_deref(), Some("alicia"));
    assert_eq!(private.home.as_deref(), Some("/home/alicia"));
    assert_eq!(private.host.as_deref(), Some("zebra-7"));
    assert_eq!(private.people, BTreeSet::from(["bob".to_owned()]));
    assert!(private.system.contains("ollama") && private.system.contains("root"));
    assert_eq!(salt(&Few), salt(&Few));
}

#[test]
fn the_door_redacts_and_takes_its_own_placeholders_back() {
    let redactor = Redactor::on(salt(&Few), Private::of(&Few));
    let bob = redactor.name("bob");
    let options = Options {
        user: Some("bob".to_owned()),
        ..Options::default()
    };
    let host = Host::new(Box::new(Few), redactor, options).recording();
    assert_eq!(host.options().user.as_deref(), Some(bob.as_str()));
    assert_eq!(host.env("HOME"), Seen::Got("/home/USER".to_owned()));
    assert_eq!(host.text("/home/USER/file"), Seen::Got("inside".to_owned()));
    assert_eq!(host.link("/x"), Seen::Got("/home/USER/file".to_owned()));
    assert_eq!(
        host.real("/home/USER/file"),
        Seen::Got("/home/USER/file".to_owned())
    );
    assert_eq!(
        host.open("/home/USER"),
        Seen::Got("/home/alicia".to_owned())
    );
    assert_eq!(
        host.list("/home").map(|listing| listing.names),
        Seen::Got(vec!["USER".to_owned(), bob.clone()])
    );
    // A filter sees placeholders too.
    let rows = host.lines("/etc/passwd", &|line| {
        line.starts_with("USER:") || line.starts_with(&bob)
    });
    assert_eq!(rows.map(|rows| rows.lines.len()), Seen::Got(2));
    assert_eq!(
        host.modinfo("/x").map(|info| info.signer),
        Seen::Got(Some("HOST Secure Boot Module Signature key".to_owned()))
    );
    let answer = host.answer("nvml", || Seen::Got(vec![format!("GPU-{UUID}")]));
    assert!(
        answer
            .got()
            .is_some_and(|uuids| uuids[0].starts_with("GPU-0000")),
        "{answer:?}"
    );
    let recorded = format!("{:?}", host.take_entries());
    // `open` hands out an errno or `ok`; this source's path in it is the test's own.
    let recorded = recorded.replace("Open(\"/home/USER\", \"/home/alicia\")", "");
    assert!(
        !recorded.contains("alicia") && !recorded.contains("bob") && !recorded.contains("zebra"),
        "{recorded}"
    );
    assert!(recorded.contains("/home/USER/file"));
}
