/**
 * Ways to anything outside by ordinary programs: names, /dev/tcp and /dev/udp, metadata addresses, the service's own
 * ports, the machine's unix sockets, netlink, vsock, packet sockets; and what /proc and /sys tell of networks.
 */
import { createServer, type Server } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { evidence, hostile } from "../support/hostile.ts";
import { running } from "../support/running.ts";

/** Where clouds, container engines and orchestrators answer. */
const METADATA = [
  "169.254.169.254",
  "169.254.170.2",
  "100.100.100.200",
  "192.0.0.192",
  "172.17.0.1",
  "10.96.0.1",
];
const LOCAL = ["127.0.0.1", "0.0.0.0", "localhost"];
const ports = Object.values(running.instance.ports);

const ABSTRACT = `\0svc-escape-${process.pid}`;
const visitors: string[] = [];
let listener: Server;
beforeAll(async () => {
  listener = createServer((socket) => {
    visitors.push("somebody");
    socket.destroy();
  });
  await new Promise<void>((resolve) => listener.listen(ABSTRACT, resolve));
});
afterAll(() => {
  listener.close();
});

test("Bash reaches no port by /dev/tcp and /dev/udp", async () => {
  const targets = [...METADATA, ...LOCAL].flatMap((host) => [80, ...ports].map((port) => `${host}/${port}`));
  const code = `for target in ${targets.join(" ")}; do for kind in tcp udp; do
  (exec 3<>/dev/$kind/$target) 2>&1 | grep -o 'Operation not permitted\\|No such file\\|refused\\|resolution' | head -1
done; done | sort | uniq -c | sort -rn`;
  const { stdout, code: exit } = await hostile({ lang: "bash", code });
  expect(exit).toBe(0);
  // A numeric address ends at the socket; "localhost" is found in the jail's own hosts file.
  expect(
    stdout
      .trim()
      .split("\n")
      .map((line) => line.trim()),
  ).toEqual([`${2 * targets.length} Operation not permitted`]);
});

test("Python connects to no address, metadata or local", async () => {
  const seen = await evidence<string[]>(`
import socket
hosts, ports = ${JSON.stringify([
    [...METADATA, ...LOCAL, "::1", "fe80::1"],
    [80, 443, ...ports],
  ])}
show(sorted({attempt(lambda: socket.create_connection((host, port), 1)) for host in hosts for port in ports}))`);
  expect(seen).toEqual(["EPERM"]);
});

test("names are not resolved, by the library or by hand", async () => {
  const seen = await evidence<[string[], string]>(`
import socket
def resolve(name):
    try: return socket.getaddrinfo(name, 80) and "ok"
    except socket.gaierror as error: return {socket.EAI_AGAIN: "again", socket.EAI_NONAME: "none", socket.EAI_SYSTEM: "system"}.get(error.errno, str(error))
show([[resolve(name) for name in ("example.com", "metadata.google.internal", "host.docker.internal")],
  attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("8.8.8.8", 53)))])`);
  expect(seen[0].filter((result) => !["again", "none", "system"].includes(result))).toEqual([]);
  expect(seen[1]).toBe("EPERM");
});

test("Node.js fetches, connects, listens and resolves nothing", async () => {
  const code = `
const { createConnection, createServer } = require("node:net");
const { createSocket } = require("node:dgram");
const dns = require("node:dns/promises");
const failure = (promise) => promise.then(() => "ok", (error) => error.code ?? error.cause?.code ?? String(error));
const event = (emitter, good) => failure(new Promise((resolve, reject) => { emitter.once(good, resolve); emitter.once("error", reject); }));
(async () => console.log(JSON.stringify([
  await failure(fetch("http://169.254.169.254/latest/meta-data/")),
  await event(createConnection(${ports[0]}, "127.0.0.1"), "connect"),
  await event(createServer().listen(0, "127.0.0.1"), "listening"),
  await failure(new Promise((resolve, reject) => { const s = createSocket("udp4"); s.on("error", reject); s.bind(0, resolve); })),
  await failure(dns.resolve4("example.com")),
])))();`;
  const { stdout, stderr } = await hostile({ lang: "js", code });
  expect(stderr).toBe("");
  const [fetched, connected, listened, bound, resolved] = JSON.parse(stdout) as string[];
  expect([fetched, connected, listened, bound]).toEqual(["EPERM", "EPERM", "EPERM", "EPERM"]);
  expect(["ECONNREFUSED", "ESERVFAIL", "ETIMEOUT", "EPERM", "ENOTFOUND", "EREFUSED"]).toContain(resolved);
});

test("Perl and the tools of the image reach nothing", async () => {
  const code = `
perl -MSocket -e 'for (AF_INET, AF_INET6, 16, 17, 40) { print socket(my $s, $_, SOCK_STREAM, 0) ? "ok" : $!{EPERM} ? "EPERM" : "$!", "\\n" }' | sort -u
git ls-remote http://127.0.0.1:${ports[0]}/x 2>&1 | grep -c 'not permitted\\|Unable to\\|unable to\\|not a git command\\|Could not'
python3 -m http.server 8000 2>&1 | grep -o 'PermissionError: .Errno 1.' | head -1`;
  const { stdout } = await hostile({ lang: "bash", code });
  expect(stdout).toBe("EPERM\n1\nPermissionError: [Errno 1]\n");
});

test("netlink, packet, vsock, Bluetooth, crypto and XDP sockets are refused before any protocol is asked", async () => {
  const families = {
    netlink: 16,
    packet: 17,
    ax25: 3,
    can: 29,
    tipc: 30,
    bluetooth: 31,
    alg: 38,
    vsock: 40,
    kcm: 41,
    qipcrtr: 42,
    smc: 43,
    xdp: 44,
    mctp: 45,
  };
  const seen = await evidence<Record<string, string[]>>(`
show({name: sorted({call(41, family, kind, protocol) for kind in (1, 2, 3, 5) for protocol in (0, 4, 9, 12, 15, 16, 0x300)})
  for name, family in json.loads('${JSON.stringify(families)}').items()})`);
  expect(seen).toEqual(Object.fromEntries(Object.keys(families).map((name) => [name, ["EPERM"]])));
});

test("an abstract socket of the machine is not there", async () => {
  const name = ABSTRACT.slice(1);
  expect(
    await evidence(`
import socket
def connect(name):
    s = socket.socket(socket.AF_UNIX); s.settimeout(2); s.connect(name)
server = socket.socket(socket.AF_UNIX); server.bind("\\0${name}-own"); server.listen()
show([attempt(lambda: connect("\\0${name}")), attempt(lambda: connect("\\0${name}-own")),
  [line.split()[-1] for line in open("/proc/net/unix").readlines()[1:]]])`),
  ).toEqual(["ECONNREFUSED", "ok", [`@${name}-own`, `@${name}-own`]]);
  expect(visitors).toEqual([]);
});

test("the machine's sockets in the file system are not there", async () => {
  const { dataDir, jailSocket, redisSocket } = running.instance;
  const paths = [
    "/run/svc/3190.sock",
    "/var/run/docker.sock",
    "/run/containerd/containerd.sock",
    "/run/dbus/system_bus_socket",
    jailSocket,
    redisSocket,
  ];
  const seen = await evidence<string[]>(`
import socket
def connect(path): socket.socket(socket.AF_UNIX).connect(path)
paths = ${JSON.stringify(paths)}
show([attempt(lambda: connect(path)) for path in paths + ["/proc/1/root" + path for path in paths] + ["/proc/self/root/.." + "${dataDir}"]])`);
  expect(seen.filter((result) => !["ENOENT", "EACCES"].includes(result))).toEqual([]);
});

test("the jail's network shows nothing but a dead loopback", async () => {
  const { stdout } = await hostile({
    lang: "bash",
    code: `cd /proc/net
tail -n +3 dev | awk '{print $1, $2 + $10}'
for f in tcp udp raw udplite tcp6 udp6 raw6 packet arp route ipv6_route; do
  [ -r $f ] && tail -n +2 $f | grep -v ' lo$' | sed "s/^/$f /"
done
cat if_inet6 2>/dev/null | head -3
cat fib_trie softnet_stat sockstat protocols netstat snmp ptype stat/* 2>/dev/null
ls -A /sys`,
  });
  expect(stdout).toMatch(/^(lo: 0\n)?$/);
});

test("a descriptor of a socket that was passed around is still no way out", async () => {
  expect(
    await evidence(`
import socket
left, right = socket.socketpair()
attempts = {
  "ioctl SIOCGIFCONF": lambda: call(16, left.fileno(), 0x8912, ctypes.create_string_buffer(64)),
  "ioctl SIOCSIFADDR": lambda: call(16, left.fileno(), 0x8916, ctypes.create_string_buffer(64)),
  "ioctl SIOCGSKNS": lambda: call(16, left.fileno(), 0x894c, 0),
  "SO_ATTACH_BPF": lambda: attempt(lambda: left.setsockopt(socket.SOL_SOCKET, 50, 0)),
  "SO_ATTACH_FILTER": lambda: attempt(lambda: left.setsockopt(socket.SOL_SOCKET, 26, b"\\0" * 16)),
  "SO_PEERPIDFD": lambda: attempt(lambda: os.close(left.getsockopt(socket.SOL_SOCKET, 77))),
  "connect to AF_INET": lambda: call(42, left.fileno(), ctypes.c_char_p(b"\\2\\0\\0\\x50\\x7f\\0\\0\\1" + b"\\0" * 8), 16),
}
show({name: action() for name, action in attempts.items()})`),
  ).toMatchObject({
    "ioctl SIOCGIFCONF": "ENOTTY",
    "ioctl SIOCSIFADDR": "ENOTTY",
    "ioctl SIOCGSKNS": "ENOTTY",
    SO_ATTACH_BPF: "EPERM",
    SO_ATTACH_FILTER: "EPERM",
    "connect to AF_INET": expect.stringMatching(/^E(ISCONN|INVAL|AFNOSUPPORT)$/),
  });
});
