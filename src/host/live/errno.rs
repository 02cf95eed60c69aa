//! Names of Linux error numbers.

use rustix::io::Errno;

/// The name that the manual pages use; a number without one is written as `errno N`.
pub fn name(errno: Errno) -> String {
    NAMES.iter().find(|(known, _)| *known == errno).map_or_else(
        || format!("errno {}", errno.raw_os_error()),
        |(_, name)| (*name).to_owned(),
    )
}

const NAMES: &[(Errno, &str)] = &[
    (Errno::ACCESS, "EACCES"),
    (Errno::ADDRINUSE, "EADDRINUSE"),
    (Errno::ADDRNOTAVAIL, "EADDRNOTAVAIL"),
    (Errno::ADV, "EADV"),
    (Errno::AFNOSUPPORT, "EAFNOSUPPORT"),
    (Errno::AGAIN, "EAGAIN"),
    (Errno::ALREADY, "EALREADY"),
    (Errno::BADE, "EBADE"),
    (Errno::BADF, "EBADF"),
    (Errno::BADFD, "EBADFD"),
    (Errno::BADMSG, "EBADMSG"),
    (Errno::BADR, "EBADR"),
    (Errno::BADRQC, "EBADRQC"),
    (Errno::BADSLT, "EBADSLT"),
    (Errno::BFONT, "EBFONT"),
    (Errno::BUSY, "EBUSY"),
    (Errno::CANCELED, "ECANCELED"),
    (Errno::CHILD, "ECHILD"),
    (Errno::CHRNG, "ECHRNG"),
    (Errno::COMM, "ECOMM"),
    (Errno::CONNABORTED, "ECONNABORTED"),
    (Errno::CONNREFUSED, "ECONNREFUSED"),
    (Errno::CONNRESET, "ECONNRESET"),
    (Errno::DEADLK, "EDEADLK"),
    (Errno::DESTADDRREQ, "EDESTADDRREQ"),
    (Errno::DOM, "EDOM"),
    (Errno::DOTDOT, "EDOTDOT"),
    (Errno::DQUOT, "EDQUOT"),
    (Errno::EXIST, "EEXIST"),
    (Errno::FAULT, "EFAULT"),
    (Errno::FBIG, "EFBIG"),
    (Errno::HOSTDOWN, "EHOSTDOWN"),
    (Errno::HOSTUNREACH, "EHOSTUNREACH"),
    (Errno::HWPOISON, "EHWPOISON"),
    (Errno::IDRM, "EIDRM"),
    (Errno::ILSEQ, "EILSEQ"),
    (Errno::INPROGRESS, "EINPROGRESS"),
    (Errno::INTR, "EINTR"),
    (Errno::INVAL, "EINVAL"),
    (Errno::IO, "EIO"),
    (Errno::ISCONN, "EISCONN"),
    (Errno::ISDIR, "EISDIR"),
    (Errno::ISNAM, "EISNAM"),
    (Errno::KEYEXPIRED, "EKEYEXPIRED"),
    (Errno::KEYREJECTED, "EKEYREJECTED"),
    (Errno::KEYREVOKED, "EKEYREVOKED"),
    (Errno::L2HLT, "EL2HLT"),
    (Errno::L2NSYNC, "EL2NSYNC"),
    (Errno::L3HLT, "EL3HLT"),
    (Errno::L3RST, "EL3RST"),
    (Errno::LIBACC, "ELIBACC"),
    (Errno::LIBBAD, "ELIBBAD"),
    (Errno::LIBEXEC, "ELIBEXEC"),
    (Errno::LIBMAX, "ELIBMAX"),
    (Errno::LIBSCN, "ELIBSCN"),
    (Errno::LNRNG, "ELNRNG"),
    (Errno::LOOP, "ELOOP"),
    (Errno::MEDIUMTYPE, "EMEDIUMTYPE"),
    (Errno::MFILE, "EMFILE"),
    (Errno::MLINK, "EMLINK"),
    (Errno::MSGSIZE, "EMSGSIZE"),
    (Errno::MULTIHOP, "EMULTIHOP"),
    (Errno::NAMETOOLONG, "ENAMETOOLONG"),
    (Errno::NAVAIL, "ENAVAIL"),
    (Errno::NETDOWN, "ENETDOWN"),
    (Errno::NETRESET, "ENETRESET"),
    (Errno::NETUNREACH, "ENETUNREACH"),
    (Errno::NFILE, "ENFILE"),
    (Errno::NOANO, "ENOANO"),
    (Errno::NOBUFS, "ENOBUFS"),
    (Errno::NOCSI, "ENOCSI"),
    (Errno::NODATA, "ENODATA"),
    (Errno::NODEV, "ENODEV"),
    (Errno::NOENT, "ENOENT"),
    (Errno::NOEXEC, "ENOEXEC"),
    (Errno::NOKEY, "ENOKEY"),
    (Errno::NOLCK, "ENOLCK"),
    (Errno::NOLINK, "ENOLINK"),
    (Errno::NOMEDIUM, "ENOMEDIUM"),
    (Errno::NOMEM, "ENOMEM"),
    (Errno::NOMSG, "ENOMSG"),
    (Errno::NONET, "ENONET"),
    (Errno::NOPKG, "ENOPKG"),
    (Errno::NOPROTOOPT, "ENOPROTOOPT"),
    (Errno::NOSPC, "ENOSPC"),
    (Errno::NOSR, "ENOSR"),
    (Errno::NOSTR, "ENOSTR"),
    (Errno::NOSYS, "ENOSYS"),
    (Errno::NOTBLK, "ENOTBLK"),
    (Errno::NOTCONN, "ENOTCONN"),
    (Errno::NOTDIR, "ENOTDIR"),
    (Errno::NOTEMPTY, "ENOTEMPTY"),
    (Errno::NOTNAM, "ENOTNAM"),
    (Errno::NOTRECOVERABLE, "ENOTRECOVERABLE"),
    (Errno::NOTSOCK, "ENOTSOCK"),
    (Errno::NOTTY, "ENOTTY"),
    (Errno::NOTUNIQ, "ENOTUNIQ"),
    (Errno::NXIO, "ENXIO"),
    (Errno::OPNOTSUPP, "EOPNOTSUPP"),
    (Errno::OVERFLOW, "EOVERFLOW"),
    (Errno::OWNERDEAD, "EOWNERDEAD"),
    (Errno::PERM, "EPERM"),
    (Errno::PFNOSUPPORT, "EPFNOSUPPORT"),
    (Errno::PIPE, "EPIPE"),
    (Errno::PROTO, "EPROTO"),
    (Errno::PROTONOSUPPORT, "EPROTONOSUPPORT"),
    (Errno::PROTOTYPE, "EPROTOTYPE"),
    (Errno::RANGE, "ERANGE"),
    (Errno::REMCHG, "EREMCHG"),
    (Errno::REMOTE, "EREMOTE"),
    (Errno::REMOTEIO, "EREMOTEIO"),
    (Errno::RESTART, "ERESTART"),
    (Errno::RFKILL, "ERFKILL"),
    (Errno::ROFS, "EROFS"),
    (Errno::SHUTDOWN, "ESHUTDOWN"),
    (Errno::SOCKTNOSUPPORT, "ESOCKTNOSUPPORT"),
    (Errno::SPIPE, "ESPIPE"),
    (Errno::SRCH, "ESRCH"),
    (Errno::SRMNT, "ESRMNT"),
    (Errno::STALE, "ESTALE"),
    (Errno::STRPIPE, "ESTRPIPE"),
    (Errno::TIME, "ETIME"),
    (Errno::TIMEDOUT, "ETIMEDOUT"),
    (Errno::TOOBIG, "E2BIG"),
    (Errno::TOOMANYREFS, "ETOOMANYREFS"),
    (Errno::TXTBSY, "ETXTBSY"),
    (Errno::UCLEAN, "EUCLEAN"),
    (Errno::UNATCH, "EUNATCH"),
    (Errno::USERS, "EUSERS"),
    (Errno::XDEV, "EXDEV"),
    (Errno::XFULL, "EXFULL"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_usual_ones() {
        for (number, expected) in [
            (1, "EPERM"),
            (2, "ENOENT"),
            (5, "EIO"),
            (6, "ENXIO"),
            (11, "EAGAIN"),
            (13, "EACCES"),
            (16, "EBUSY"),
            (19, "ENODEV"),
            (20, "ENOTDIR"),
            (22, "EINVAL"),
            (24, "EMFILE"),
            (524, "errno 524"),
        ] {
            assert_eq!(name(Errno::from_raw_os_error(number)), expected);
        }
        assert_eq!(name(Errno::NODATA), "ENODATA");
        assert_eq!(name(Errno::LOOP), "ELOOP");
        assert_eq!(name(Errno::NOTSUP), "EOPNOTSUPP");
    }

    #[test]
    fn every_number_has_one_name() {
        for (index, (errno, name)) in NAMES.iter().enumerate() {
            assert!(name.starts_with('E'));
            for (other, other_name) in &NAMES[..index] {
                assert!(errno != other && name != other_name, "{name} {other_name}");
            }
        }
    }
}
