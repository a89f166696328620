"""Takes out of texts what identifies people, machines and networks, and every secret; equal things stay equal.

The same value gets the same replacement in the whole bundle, of the same shape, so that a parser still reads it: a UUID stays a
UUID, an address an address. What is replaced is told three ways: by shape (addresses, tokens with a known prefix, keys), by
the name before it (`password=`, `Serial Number:`), and by what the machine and its logs call themselves (hosts, users).
"""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from gpudoctor.patterns.database import AnchorDatabase

_TOO_COMMON = {
    "root", "ubuntu", "debian", "centos", "rocky", "admin", "user", "users", "nvidia", "gpu", "cuda", "nccl", "localhost", "localdomain",
    "local", "kernel", "linux", "node", "host", "none", "null", "systemd", "docker", "nobody", "daemon", "test", "server", "default", "torch",
    "python", "slurm", "home", "shared", "error", "info", "warning", "name", "service", "data", "compute", "main", "master", "worker", "bin",
    "internal", "command", "not", "nvrm", "xid", "pid", "unknown", "module", "memory", "network", "driver", "video", "render", "lost", "redacted", "example", "version", "release",
}  # fmt: skip
# Accounts and groups that systems come with: they tell nothing, and many are also names of programs.
_OF_SYSTEMS = _TOO_COMMON | {
    "adm", "apache", "audio", "avahi", "backup", "bin", "ceph", "chrony", "_chrony", "clevis", "cloud-user", "cockpit-ws", "colord",
    "containerd", "core", "crontab", "cups", "daemon", "dbus", "dialout", "disk", "dnsmasq", "docker", "ec2-user", "etcd", "floppy",
    "fwupd-refresh", "games", "gdm", "geoclue", "gitlab-runner", "gnats", "gnome-initial-setup", "grafana", "haproxy", "hplip", "icinga",
    "influxdb", "input", "irc", "jenkins", "kernoops", "kvm", "landscape", "libvirt-qemu", "list", "lp", "lxd", "mail", "man", "messagebus",
    "munge", "mysql", "nagios", "netdev", "news", "nfsnobody", "nginx", "nm-openvpn", "nobody", "nogroup", "ntp", "nvidia-pe+",
    "nvidia-persistenced", "pcp", "plugdev", "polkitd", "polkituser", "pollinate", "postfix", "postgres", "prometheus", "proxy", "pulse",
    "qemu", "rabbitmq", "redis", "render", "rpc", "_rpc", "rpcuser", "rtkit", "saned", "setroubleshoot", "shadow", "slurm", "snapd",
    "speech-dispatcher", "sshd", "sssd", "staff", "statd", "sudo", "sync", "sys", "syslog", "systemd+", "systemd-coredump",
    "systemd-network", "systemd-oom", "systemd-resolve", "systemd-timesync", "tape", "tcpdump", "telegraf", "tomcat", "tss", "tty",
    "ubuntu", "unbound", "usbmux", "utmp", "uucp", "uuidd", "vagrant", "video", "wheel", "whoopsie", "www-data", "zabbix", "user",
}  # fmt: skip
_PLAIN = re.compile(
    r"^(?:n/?a|none|null|true|false|yes|no|unknown|unset|on|off|-?\d{1,9}(?:\.\d+)?|\*+|<[^>]*>|\[[^\]]*\]|not .*|0x0+)$",
    re.I,
)

_PEM = re.compile(
    r"-----BEGIN ([A-Z0-9 ]*(?:PRIVATE KEY|CERTIFICATE|MESSAGE|SIGNATURE)[A-Z0-9 ]*)-----.*?(?:-----END \1-----|\Z)",
    re.DOTALL,
)
_SHAPES = re.compile(
    r"""(?x)(?<![A-Za-z0-9_])(?:
      (?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{12,20}
    | gh[pousr]_[A-Za-z0-9]{20,255} | github_pat_[A-Za-z0-9_]{20,255} | gl(?:pat|ptt|dt|rt)-[\w-]{16,64}
    | hf_[A-Za-z0-9]{16,64} | api_org_[A-Za-z0-9]{16,64}
    | sk-[A-Za-z0-9_-]{16,255} | sk_(?:live|test)_[A-Za-z0-9]{16,255} | nvapi-[\w-]{16,255} | r8_[A-Za-z0-9]{30,64}
    | wandb_v\d_\w{20,255} | glcbt-[\w-]{16,64}
    | xox[a-z]-[\w-]{10,255} | xapp-[\w-]{10,255} | AIza[\w-]{30,45} | ya29\.[\w-]{20,512} | dckr_pat_[\w-]{16,64} | npm_[A-Za-z0-9]{30,64}
    | pypi-[A-Za-z0-9_-]{30,255} | SG\.[\w-]{16,64}\.[\w-]{16,64} | hvs\.[\w-]{20,255} | AGE-SECRET-KEY-[A-Z0-9]{40,80}
    | eyJ[\w-]{8,4096}\.[\w-]{4,8192}(?:\.[\w-]{0,2048})?
    )(?![A-Za-z0-9_])"""
)
_SSH_KEY = re.compile(
    r"\b((?:ssh-(?:rsa|dss|ed25519)|ecdsa-sha2-\w+|sk-\S+@openssh\.com) )AAAA[A-Za-z0-9+/=]{20,}(?: [^\s\"']+)?"
)
_WEBHOOK = re.compile(
    r"https://(?:hooks\.slack\.com|[\w.-]*webhook[\w.-]*|discord(?:app)?\.com/api/webhooks)/[^\s\"'<>]+"
)
_URL_LOGIN = re.compile(r"\b([a-z][a-z0-9+.-]{1,20}://)([^\s/@:\"']{0,200}):([^\s/@\"']{1,500})@", re.I)
_URL_TOKEN = re.compile(r"\b([a-z][a-z0-9+.-]{1,20}://)([^\s/@:\"']{8,500})@", re.I)
_HEADER = re.compile(
    r"(?i)\b((?:proxy-)?authorization[\"']?\s*[:=]\s*[\"']?(?:(?:basic|bearer|token|negotiate|digest|apikey)\s+)?)([^\s\"',]{4,4096})"
)
_BEARER = re.compile(r"(?i)\b(bearer\s+)([A-Za-z0-9._~+/=-]{12,4096})")
_COOKIE = re.compile(r"(?i)\b((?:set-)?cookie\s*:\s*)([^\r\n]{3,4096})")
_NAMED = re.compile(
    r"""(?ix)(?<![A-Za-z0-9])(
      (?:[A-Za-z0-9]{1,40}[_.-]){0,6}
      (?:pass(?:word|wd|phrase|code)?|pwd|secret|token|api[_-]?key|apikey|access[_-]?key(?:[_-]?id)?|account[_-]?key|private[_-]?key
        |client-key|client-certificate|certificate-authority|secret[_-]?key|signing[_-]?key|encryption[_-]?key|license[_-]?key|credentials?|client[_-]?secret|auth(?:[_-]?(?:key|token|code))?
        |session(?:[_-]?(?:id|key|token))?|signature|x-amz-signature|sig|sas|psk|pin|otp|dsn|connection[_-]?string|identityregistrationtoken)
      (?:[_.-](?:value|data|file|base64|b64|hash|string|key|id|[0-9]{1,3})){0,2}
      [\"']?\s{0,3}[:=]\s{0,3}[\"']?
      )([^\s\"',;&|)}\]]{1,4096})"""
)
_NETRC = re.compile(
    r"(?m)^(\s*(?:(?:machine\s+\S+|default)\s+)?(?:(?:login|user)\s+\S+\s+)?(?:password|account)[ \t]+)(\S+)(?=[ \t]*$)"
)
_NETRC_LOGIN = re.compile(r"(?m)^(\s*(?:(?:machine\s+\S+|default)\s+)?login[ \t]+)(\S+)(?=[ \t]*(?:$|password[ \t]))")
_KEY_AFTER = re.compile(
    r"(?i)(\b(?:wandb|api[ _-]?key|login|password|token)\b[^\n]{0,60}?\s)([0-9a-f]{40})(?![0-9a-f])"
)
_FINGERPRINT = re.compile(r"\b(SHA256:)([A-Za-z0-9+/]{43})(?![A-Za-z0-9+/])")
_ENV_KEY = re.compile(r"\b((?:[A-Z][A-Z0-9]*_)+KEY[=:] ?[\"']?)([^\s\"']{8,4096})")
_OPTION = re.compile(
    r"(?i)(?<![\w-])(--?(?:[a-z0-9]+-){0,4}(?:password|passwd|pass|passphrase|pwd|secret|token|api-?key|access-?key|secret-?key|auth|credential|psk)(?:\s+|=)[\"']?)([^\s\"'-][^\s\"']{0,4095})"
)
_TOOLS = re.compile(
    r"((?:\bsshpass\s+-p\s*|\b(?:mysql|mysqldump|mariadb)\b[^\n]{0,200}?\s-p(?=\S)|\bcurl\b[^\n]{0,300}?\s(?:-u|--user)[ =]|\bldapsearch\b[^\n]{0,200}?\s-w\s+|\b(?:docker|podman|nerdctl|registry|oras|crane|skopeo)\s+(?:auth\s+)?login\b[^\n]{0,200}?\s-p[ =]?)[\"']?)([^\s\"']+)"
)
_SERIAL = re.compile(
    r"""(?ix)\b((?:[a-z]+[ _-])?(?:serial(?:[ _-]?(?:number|num|no))?|s/n|sn|asset[ _-]?tag|service[ _-]?tag|gpu[ ]pdi|board[ _-]?id[ ]serial|chassis[ _-]?id|node[ _-]?guid|sys[ _-]?image[ _-]?guid|port[ _-]?guid|system[ ]image[ ]guid|machine[ _-]?id|boot[ _-]?id|hostid|gid|product[ _-]?uuid)
      (?:[ ]\w{1,12})?["']?\s{0,60}(?:[:=]|,(?=\s*["'])|>)\s{0,4}["']?)([A-Za-z0-9][A-Za-z0-9.:_-]{3,80})"""
)
_UUID = re.compile(
    r"(?<![0-9a-fA-F])(?<![0-9a-fA-F]-)([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12})(?![0-9a-fA-F-])"
)
_BY_ID = re.compile(r"(/dev/disk/by-(?:id|uuid|partuuid|label|partlabel)/)([^\s\"']+)")
_WWN = re.compile(r"\b(wwn-0x|wwn[ =:]{1,3}0x|naa\.|eui\.|nguid=|iqn\.)([0-9a-zA-Z.:-]{8,120})")
_MAC = re.compile(
    r"(?<![0-9A-Fa-f:.-])[0-9A-Fa-f]{2}(?:([:-])[0-9A-Fa-f]{2})(?:\1[0-9A-Fa-f]{2}){4,18}(?![0-9A-Fa-f:]|\.[0-9A-Fa-f])"
)
_BARE_MAC = re.compile(r"(?i)(\b(?:mac|hwaddr|ether|perm(?:anent)?[ _-]addr(?:ess)?)\W{1,3})([0-9a-f]{12})(?![0-9a-f])")
_GUID = re.compile(
    r"(?<![0-9A-Fa-f:])[0-9a-fA-F]{4}:[0-9a-fA-F]{4}:[0-9a-fA-F]{4}:[0-9a-fA-F]{4}(?![0-9A-Fa-f:]|\.[0-9A-Fa-f])"
)
_IPV4 = re.compile(r"(?<![\w.])(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)(?![\w]|\.\d|-\d)")
_IPV6 = re.compile(r"(?<![\w:.])(?:[0-9a-fA-F]{1,4}:|:(?=:)){1,8}(?::|(?::?[0-9a-fA-F]{1,4})){0,8}(?!\w|:[\w:]|\.\w)")
_MADE_IPV6 = re.compile(r"2001:0?db8:|fe80::[0-9a-f]{1,4}$|fe80(?::0000){6}:")
_WRITTEN_OUT = 39  # characters of an IPv6 address without abbreviation
_VERSION_BEFORE = re.compile(
    r"(?i)(?:==|>=|<=|~=|\bv|\bversions?\b[\"']?\s*[:=]?\s*[\"']?|[a-z][\w.+-]*-cu\d+\s+|\brelease\s+|\blib\w+\s+|\b(?:cudnn|cublas|cufft|curand|cusolver|cusparse|nvjitlink|nccl|tensorrt|nvvm|nvrtc|driver|cuda|firmware|bios|fw)\b[^\d\n]{0,12})$"
)
_ADDRESS_BEFORE = re.compile(
    r"(?i)(?:\b(?:inet|to|from|via|hosts?|addr\w{0,6}|ip|dst|src|peer|gateway|server|listen|bind)[\s=:\"']{1,4}|//|@)$"
)
_ADDRESS_AFTER = re.compile(r":\d{2,5}\b|/\d{1,2}\b")
_EMAIL = re.compile(r"(?<![\w.+/:@-])[A-Za-z0-9][\w.+-]{0,63}@(?:[A-Za-z0-9-]{1,63}\.){1,6}[A-Za-z]{2,24}(?![\w])")
_UNIT = re.compile(r"\.(?:service|socket|target|mount|slice|scope|timer|path|device)$")
_HOME = re.compile(r"(/(?:home|Users|users|homes|export/home|nfs/home|scratch/users)/)([A-Za-z0-9_][\w.-]{0,63})")
_WINDOWS_HOME = re.compile(r"(?i)(\b[a-z]:\\+users\\+)([^\\\s\"']{1,64})")

_HOST_PLACES = (
    re.compile(r"^(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)) ([A-Za-z0-9][\w.-]*) [\w./()@-]+(?:\[\d+\])?: ", re.MULTILINE),
    re.compile(r"^Linux (?!version )([A-Za-z0-9][\w.-]*) \d+\.\d+", re.MULTILINE),
    re.compile(r"^(?:\[[^\]]{1,20}\] ?)?([A-Za-z][\w.-]*):\d+:\d+ \[\d+\] NCCL ", re.MULTILINE),
    re.compile(r"(?im)^[ \t]*(?:static |transient )?host ?name[ \t]*[:=][ \t]*([A-Za-z0-9][\w.-]{0,252})[ \t]*$"),
    re.compile(r"(?i)[\"']host_?(?:name)?[\"']\s*:\s*[\"']([A-Za-z0-9][\w.-]{0,252})[\"']"),
    re.compile(r"(?m)^(?:HOSTNAME|HOST|SLURMD_NODENAME|SLURM_SUBMIT_HOST|SLURM_LAUNCH_NODE_IPADDR|MASTER_ADDR|NODE_NAME|KUBERNETES_NODE_NAME|SLURM_TOPOLOGY_ADDR)=([A-Za-z0-9][\w.-]*)"),
    re.compile(r"\*\*\* (?:JOB|STEP) \S+ ON ([A-Za-z0-9][\w.-]*) CANCELLED"),
    re.compile(r"\bsrun: error: ([A-Za-z0-9][\w.-]*): tasks? "),
    re.compile(r"\b(?:ssh|scp|rsync|sftp)\b[^\n]{0,120}?\s[\w.-]+@([A-Za-z0-9][\w.-]*)"),
    re.compile(r"\b(?:NodeName|NodeHostName|NodeAddr|BatchHost|AllocNode:Sid)=([A-Za-z0-9][\w.-]*)"),
)  # fmt: skip
_USER_PLACES = (
    re.compile(r"(?m)^(?:USER|LOGNAME|SUDO_USER|USERNAME|SLURM_JOB_USER)=([A-Za-z_][\w.-]*)"),
    re.compile(r"\bsudo(?:\[\d+\])?: +([a-z_][\w.-]*) : "),
    re.compile(r"\bUserId=([A-Za-z_][\w.-]*)\("),
    re.compile(r"/(?:home|Users|homes)/([A-Za-z_][\w.-]{0,63})"),
    re.compile(r"(?i)\b[a-z]:\\+users\\+([^\\\s\"']{1,64})"),
    re.compile(r"(?:Accepted|Failed) \w+ for ([a-z_][\w.-]*) from"),
    re.compile(r"ssh(?:pass\s+-p\s+\S+\s+ssh)?\s+(?:-\S+\s+)*([a-z_][\w.-]*)@"),
    re.compile(r"\b(?:scp|rsync|sftp)\b[^\n]{0,120}?\s([a-z_][\w.-]*)@"),
    re.compile(r"\buid=\d+\(([A-Za-z_][\w.-]*)\)"),
    re.compile(r"(?m)^[dlcbs-][rwxsStT-]{9}[.+@]?\s+\d+\s+([A-Za-z_][\w.-]*)\s"),  # ls -l: owner,
    re.compile(r"(?m)^[dlcbs-][rwxsStT-]{9}[.+@]?\s+\d+\s+\S+\s+([A-Za-z_][\w.-]*)\s"),  # and group
    re.compile(
        r"(?m)^([a-z_][\w.-]*\+?)\s+\d+\s+(?:\d+\.\d\s+\d+\.\d\s|[RSDZTIX][<NLsl+W]*\s+\S+ )"
    ),  # ps aux; user, pid, state
    re.compile(r"(?m)^([a-z_][\w.-]*\+?)\s+\d+\s+\d+\s+\d+\s+(?:\d\d:\d\d|[A-Z][a-z]{2}\d\d)\s"),  # ps -ef
    re.compile(r"(?<![\w/.~])~([a-z_][\w-]{2,31})(?=/)"),
)
_ADDRESS_PLACE = re.compile(r"\b(?:inet|addr|src|via|from|to)[ :=]((?:\d{1,3}\.){3}\d{1,3})(?![\w.])")
_USER_FIELD = re.compile(
    r"""(?i)(\b(?:user(?:_?name)?|login|owner|logname)(?:=[\"']?|[\"']\s{0,3}:\s{0,3}[\"'])|\b(?:for|by) (?:invalid |illegal )?user )([a-z_][\w.-]{1,63})"""
)
_NODE_LISTS = re.compile(
    r"(?m)^(SLURM_(?:JOB_|STEP_)?NODELIST|SLURM_NODELIST|PBS_NODEFILE|LSB_HOSTS|HYDRA_HOST_FILE|OMPI_MCA_orte_hnp_uri|NodeList)=(\S+)"
)
_KEPT_NETWORKS = tuple(
    ipaddress.ip_network(net) for net in ("0.0.0.0/8", "127.0.0.0/8", "255.0.0.0/8", "224.0.0.0/4", "169.254.169.254/32", "172.17.0.0/16", "192.168.122.0/24", "198.18.0.0/15")
)  # fmt: skip


# A line without any of these holds nothing that only its words give away; most lines of a log don't.
_SUSPICIOUS = AnchorDatabase(
    (
        "pass", "pwd", "secret", "token", "key", "cred", "auth", "session", "sig", "sas", "psk", "pin", "otp", "dsn", "connection", "cookie",
        "bearer", "ssh-", "ecdsa", "://", "akia", "asia", "aroa", "aida", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat", "glpat", "glptt",
        "gldt", "glrt", "hf_", "api_org", "sk-", "sk_", "nvapi", "r8_", "xox", "xapp", "glcbt", "aiza", "ya29", "dckr_pat", "npm_", "pypi-", "sg.", "hvs.", "eyj",
        "sshpass", "mysql", "mariadb", "curl", "ldapsearch", "nodelist", "nodefile", "lsb_hosts", "host_file", "hnp_uri", "serial", "tag", "pdi",
        "chassis", "guid", "machine", "boot", "hostid", "gid", "uuid", "/by-", "wwn-", "naa.", "eui.", "iqn.", "@", "home/", "user", "login",
        "owner", "logname", "wandb", "sha256:", "client-", "certificate-", "s/n", "sn:", "sn ", "hwaddr", "mac", "ether", "perm", "wwn",
        "docker", "podman", "nerdctl", "registry", "oras", "crane", "skopeo", "account",
    )
)  # fmt: skip


def _by_suspicion(text: str) -> Iterator[tuple[bool, str]]:
    """Yield runs of lines, with whether they hold one of the suspicious words."""
    raw = text.encode("utf-8", "surrogateescape")
    spans: list[tuple[int, int]] = []
    end = -1
    for hit, _ in _SUSPICIOUS.scan(raw):
        if hit <= end:
            continue
        start = raw.rfind(b"\n", 0, hit - 1) + 1
        end = raw.find(b"\n", hit) + 1 or len(raw)
        if spans and spans[-1][1] >= start:
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((start, end))
    position = 0
    for start, end in spans:
        if start > position:
            yield False, raw[position:start].decode("utf-8", "surrogateescape")
        yield True, raw[start:end].decode("utf-8", "surrogateescape")
        position = end
    if position < len(raw):
        yield False, raw[position:].decode("utf-8", "surrogateescape")


def _written_out(address: str) -> str:
    """Write an IPv6 address with all its digits; `exploded` prints the IPv4 address in one as such from Python 3.13 on."""
    digits = f"{int(ipaddress.IPv6Address(address)):032x}"
    return ":".join(digits[at : at + 4] for at in range(0, 32, 4))


class Redactor:
    """Replaces secrets and identities; `learn` all texts first, then `redact` each. `counts` tells how many of each kind."""

    def __init__(self, hosts: Iterable[str] = (), users: Iterable[str] = (), addresses: Iterable[str] = ()) -> None:
        self.counts: Counter[str] = Counter()
        self._known: dict[tuple[str, str], str] = {}
        self._numbers: Counter[str] = Counter()
        self._hosts: dict[str, None] = {}
        self._users: dict[str, None] = {}
        self._addresses = set(addresses)
        self._names: re.Pattern[str] | None = None
        self._lower: dict[str, str] = {}  # names of hosts with a number in them
        for host in hosts:
            self._host(host)
        for user in users:
            self._user(user)

    # -- learning -----------------------------------------------------------------------------------------------------

    def learn(self, text: str) -> None:
        """Take note of the names of hosts and users, and of addresses, that a text mentions in places where only they stand."""
        for place in _HOST_PLACES:
            for found in place.finditer(text):
                self._host(found[1])
        for place in _USER_PLACES:
            for found in place.finditer(text):
                self._user(found[1])
        self._addresses.update(found[1] for found in _ADDRESS_PLACE.finditer(text))
        self._names = None

    def _host(self, name: str) -> None:
        name = name.strip(".-_")
        for part in (name, name.partition(".")[0]):
            if _is_address(part) or part.isdigit():
                continue
            if len(part) >= 3 and part.lower() not in _TOO_COMMON:
                self._hosts.setdefault(part)
        domain = name.partition(".")[2]
        if "." in domain and domain.lower() not in ("localdomain", "example.org") and not _is_address(name):
            self._hosts.setdefault(domain)

    def _user(self, name: str) -> None:
        name = name.strip(".-")
        if len(name) >= 3 and name.lower() not in _OF_SYSTEMS and not name.isdigit():
            self._users.setdefault(name)

    # -- replacing ----------------------------------------------------------------------------------------------------

    def redact(self, text: str, *, versions: bool = False) -> str:
        """Return the text without what must not leave the machine. versions: four-part numbers are versions, not addresses."""
        text = _PEM.sub(self._pem, text)
        parts: list[str] = []
        for suspicious, lines in _by_suspicion(text):
            parts.append(self._shapes(self._words(lines) if suspicious else lines, versions))
        return "".join(parts)

    def _words(self, text: str) -> str:
        """Replace what is told by words before it or inside it."""
        text = _SSH_KEY.sub(lambda m: m[1] + self._as("key", m[0]), text)
        text = _WEBHOOK.sub(lambda m: f"https://hooks.example.org/{self._as('secret', m[0])}", text)
        text = _URL_LOGIN.sub(lambda m: f"{m[1]}{self._as('login', m[2])}:{self._as('secret', m[3])}@", text)
        text = _URL_TOKEN.sub(lambda m: f"{m[1]}{self._as('secret', m[2])}@", text)
        text = _COOKIE.sub(self._second("secret"), text)
        text = _HEADER.sub(self._second("secret"), text)
        text = _BEARER.sub(self._second("secret"), text)
        text = _SHAPES.sub(lambda m: self._as("secret", m[0]), text)
        text = _NAMED.sub(self._named, text)
        text = _ENV_KEY.sub(self._second("secret"), text)
        text = _NETRC.sub(self._second("secret"), text)
        text = _NETRC_LOGIN.sub(self._second("login"), text)
        text = _KEY_AFTER.sub(self._second("secret"), text)
        text = _FINGERPRINT.sub(self._second("key"), text)
        text = _OPTION.sub(self._second("secret"), text)
        text = _TOOLS.sub(self._second("secret"), text)
        text = _NODE_LISTS.sub(self._second("hosts"), text)
        text = _UUID.sub(lambda m: self._uuid(m[1]), text)
        text = _SERIAL.sub(self._serial, text)
        text = _BARE_MAC.sub(lambda m: m[1] + self._as("mac", m[2].lower()), text)
        text = _BY_ID.sub(self._second("disk"), text)
        text = _WWN.sub(self._second("disk"), text)
        text = _EMAIL.sub(self._email, text)
        text = _HOME.sub(lambda m: m[1] + self._person(m[2]), text)
        text = _WINDOWS_HOME.sub(lambda m: m[1] + self._person(m[2]), text)
        return _USER_FIELD.sub(lambda m: m[1] + self._person(m[2]), text)

    def _shapes(self, text: str, versions: bool) -> str:
        """Replace what is told by its shape alone, and the names that were learned."""
        text = _UUID.sub(lambda m: self._uuid(m[1]), text)
        text = _MAC.sub(lambda m: self._mac(m[0]), text)
        text = _GUID.sub(lambda m: self._guid(m[0]), text)
        text = _IPV6.sub(self._ipv6, text)
        text = _IPV4.sub(lambda m: self._ipv4(m, text_versions=versions), text)
        return (self._names or self._compile_names()).sub(self._name, text)

    def _compile_names(self) -> re.Pattern[str]:
        known = sorted({*self._hosts, *self._users}, key=len, reverse=True)
        self._lower = {host.lower(): host for host in reversed(self._hosts) if re.search(r"\d", host)}
        # A name with a number in it is no word, so it is known in capitals, too.
        body = "|".join(f"(?i:{re.escape(name)})" if name.lower() in self._lower else re.escape(name) for name in known)
        body = body or r"(?!)"
        self._names = re.compile(rf"(?<![A-Za-z0-9])(?:{body})(?![A-Za-z0-9])")
        return self._names

    def _name(self, found: re.Match[str]) -> str:
        name = found[0]
        if name in self._users:
            return self._person(name)
        name = name if name in self._hosts else self._lower.get(name.lower(), name)
        if "." in name and name in self._hosts and any(host.endswith("." + name) for host in self._hosts):
            return self._replaced("domain", name, lambda n: f"domain-{n}.example.org")
        return self._replaced("host", name.partition(".")[0], lambda n: f"node-{n}")

    def _person(self, name: str) -> str:
        done = name.startswith("user-") and name[5:].isdigit()
        return name if done or name.lower() in _TOO_COMMON else self._replaced("user", name, lambda n: f"user-{n}")

    def _replaced(self, kind: str, value: str, make: Callable[[int], str]) -> str:
        self.counts[kind] += 1
        return self._made(kind, value, make)

    def _made(self, kind: str, value: str, make: Callable[[int], str]) -> str:
        known = self._known.get((kind, value))
        if known is None:
            self._numbers[kind] += 1
            known = self._known[(kind, value)] = make(self._numbers[kind])
        return known

    def _as(self, kind: str, value: str) -> str:
        if value.startswith(("<redacted-", "redacted-")):
            return value
        return self._replaced(kind, value, lambda n: f"redacted-{kind}-{n}")

    def _second(self, kind: str) -> Callable[[re.Match[str]], str]:
        return lambda found: found[1] + self._as(kind, found[2])

    def _pem(self, found: re.Match[str]) -> str:
        if "\nredacted-key-" in found[0]:
            return found[0]
        return f"-----BEGIN {found[1]}-----\n{self._as('key', found[0])}\n-----END {found[1]}-----"

    def _named(self, found: re.Match[str]) -> str:
        name, value = found[1].strip("\"' :=\t").lower(), found[2]
        if name.endswith(("signature", "sig")) and value.isalpha() and ":" in found[1]:
            return found[0]  # a sentence about one
        if name in ("pwd", "oldpwd") or value.startswith("redacted-") or (_PLAIN.match(value) and "pass" not in name):
            return found[0]
        return found[1] + self._as("secret", value)

    def _serial(self, found: re.Match[str]) -> str:
        value = found[2]
        if (_PLAIN.match(value) and not value.isdigit()) or value.startswith(("redacted-", "00000000", "0x00000000")):
            return found[0]
        if _is_address(value):
            return found[0]
        if re.fullmatch(r"0x[0-9a-fA-F]{8,}", value):
            return found[1] + self._replaced("guid", value.lower(), lambda n: f"0x{n:0{len(value) - 2}x}")
        if re.fullmatch(r"[0-9a-fA-F:]{12,}", value) and ":" in value:
            return found[0]  # a GUID or hardware address: kept in its shape below
        if found[1].lower().startswith("gid") and ":" not in value:
            return found[0]  # of a process, not of a port
        if value.isdigit():
            return found[1] + self._replaced("serial", value, lambda n: f"{n:0{len(value)}d}")
        return found[1] + self._as("serial", value)

    def _uuid(self, value: str) -> str:
        if value.startswith("00000000-0000-4000-8000-"):
            return value
        return self._replaced("uuid", value.lower(), lambda n: f"00000000-0000-4000-8000-{n:012x}")

    def _email(self, found: re.Match[str]) -> str:
        value = found[0]
        if _UNIT.search(value) or value.endswith("example.org") or value.startswith("git@"):
            return value
        return self._replaced("email", value.lower(), lambda n: f"person-{n}@example.org")

    def _mac(self, value: str) -> str:
        mark = value[2]
        plain = value.replace("-", ":").lower()
        parts = plain.count(":") + 1
        if set(plain) <= set("0:") or set(plain) <= set("f:") or plain.startswith("02:00:00"):
            return value
        made = self._replaced(
            "mac", plain, lambda n: ":".join(["02", *["00"] * (parts - 4), *(f"{n:06x}"[i : i + 2] for i in (0, 2, 4))])
        )
        return made.replace(":", mark)

    def _guid(self, value: str) -> str:
        if set(value) <= set("0:f") or value.startswith("0000:0000:"):
            return value
        return self._replaced("guid", value.lower(), lambda n: f"0000:0000:{n >> 16:04x}:{n & 0xFFFF:04x}")

    def _ipv4(self, found: re.Match[str], *, text_versions: bool) -> str:
        value = found[0]
        try:
            address = ipaddress.IPv4Address(value)
        except ValueError:
            return value
        if any(address in network for network in _KEPT_NETWORKS) or value.startswith("255."):
            return value
        if value not in self._addresses:
            before = found.string[max(0, found.start() - 60) : found.start()].rpartition("\n")[2]
            after = found.string[found.end() : found.end() + 6]
            address_like = _ADDRESS_BEFORE.search(before) or _ADDRESS_AFTER.match(after)
            if _VERSION_BEFORE.search(before) or (text_versions and not address_like):
                return value
        return self._ipv4_of(value)

    def _ipv4_of(self, value: str) -> str:
        """Replace an address: one of the same network stays one of the same network."""
        if any(ipaddress.IPv4Address(value) in network for network in _KEPT_NETWORKS):
            return value
        net, _, host = value.rpartition(".")
        network = self._made("network", net, lambda n: f"198.{18 + (n >> 8 & 1)}.{n & 255}")
        self.counts["ip"] += 1
        if host in ("0", "255"):
            return f"{network}.{host}"
        return self._made(f"ip {net}", value, lambda n: f"{network}.{(n - 1) % 254 + 1}")

    def _ipv6(self, found: re.Match[str]) -> str:
        value, behind = found[0], ""
        if value.endswith(":") and not value.endswith("::"):
            value, behind = value[:-1], ":"
        words = value.startswith("::") or not any(char.isdigit() for char in value)  # names of C++ look like this
        if words or value.count(":") < 2 or (value.count(":") < 7 and "::" not in value):
            return found[0]
        try:
            address = ipaddress.IPv6Address(value)
        except ValueError:
            return found[0]
        if address.is_loopback or address.is_unspecified or address.is_multicast or _MADE_IPV6.match(value):
            return found[0]
        if address.ipv4_mapped is not None:
            made = f"::ffff:{self._ipv4_of(str(address.ipv4_mapped))}"
        else:
            prefix = "fe80" if address.is_link_local else "2001:db8"
            made = self._replaced("ip", str(address), lambda n: f"{prefix}::{n & 0xFFFF:x}")
        written_out = "::" not in value and len(value) == _WRITTEN_OUT  # as GIDs are
        return (_written_out(made) if written_out else made) + behind


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
