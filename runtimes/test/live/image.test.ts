import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { LANGUAGES } from "@svc/contracts/languages";
import { describe, expect, it } from "vitest";
import { commands, image, rootfs, run, runtimes } from "./support/program.ts";

/** Paths below the image's root that match. */
const find = (...tests: string[]): string[] =>
  execFileSync("find", [".", "-xdev", ...tests], { cwd: rootfs, encoding: "utf8" })
    .split("\n")
    .filter(Boolean)
    .sort();

const read = (path: string) => readFileSync(join(rootfs, path), "utf8");

describe("the image", () => {
  it.each([
    ["no file that raises rights", ["(", "-perm", "/6000", ")"]],
    [
      "no device, socket or fifo",
      ["(", "-type", "b", "-o", "-type", "c", "-o", "-type", "s", "-o", "-type", "p", ")"],
    ],
    ["no file of anybody but root", ["(", "!", "-uid", "0", "-o", "!", "-gid", "0", ")"]],
    ["no path file that slows Python's start", ["-name", "*.pth"]],
    [
      "nothing of a package manager but a stand-in",
      [
        "(",
        "-name",
        "apt*",
        "-o",
        "-name",
        "dpkg*",
        ")",
        "-path",
        "*bin/*",
        "!",
        "-lname",
        "../lib/svc/absent",
      ],
    ],
    [
      "no log, cache or list of packages",
      ["-path", "./var/*", "-type", "f", "!", "-path", "./var/cache/fontconfig/*"],
    ],
    ["no unit of a service manager", ["(", "-name", "*.service", "-o", "-name", "*.timer", ")"]],
    ["no name server", ["-name", "resolv.conf"]],
  ])("has %s", (_what, tests) => {
    expect(find(...tests)).toEqual([]);
  });

  it("has one folder that everybody may write to, /tmp", () => {
    expect(find("-perm", "-0002", "!", "-type", "l")).toEqual(["./tmp"]);
  });

  it("has file capabilities nowhere", () => {
    const listed = execFileSync("/usr/bin/python3", ["-c", LIST_CAPABILITIES, rootfs], { encoding: "utf8" });
    expect(listed).toBe("");
  });

  it("has the layout and the mount points of a Debian system, and nothing else on top", () => {
    expect(readdirSync(rootfs).sort()).toEqual(
      ["bin", "dev", "etc", "lib", "lib64", "mnt", "proc", "root", "run", "sbin", "tmp", "usr", "var"].sort(),
    );
    for (const name of ["bin", "sbin", "lib", "lib64"])
      expect(readlinkSync(join(rootfs, name))).toBe(`usr/${name}`);
    expect(readlinkSync(join(rootfs, "var/tmp"))).toBe("/tmp");
    for (const name of ["dev", "proc", "run", "tmp", "mnt/data"])
      expect(readdirSync(join(rootfs, name))).toEqual([]);
  });

  it("has an /etc of known files", () => {
    expect(readdirSync(join(rootfs, "etc")).sort()).toEqual([
      ...["debian_version", "fonts", "gitconfig", "group", "hostname", "hosts", "ld.so.cache", "ld.so.conf"],
      ...["ld.so.conf.d", "localtime", "magic", "matplotlibrc", "mime.types", "nsswitch.conf", "os-release"],
      ...["passwd", "protocols", "services", "ssl", "terminfo", "timezone"],
    ]);
    expect(
      read("etc/passwd")
        .split("\n")
        .map((line) => line.split(":", 1)[0]),
    ).toEqual(["root", "sandbox", "nobody", ""]);
    expect(readlinkSync(join(rootfs, "etc/localtime"))).toBe("/usr/share/zoneinfo/Etc/UTC");
    expect(read("etc/hostname")).toBe("sandbox\n");
  });

  it("does not know the host: neither its name nor where it was built nor any private key", () => {
    const needles = [image, ...(hostname().length > 5 ? [hostname()] : []), "building."];
    const pattern = needles.flatMap((needle) => ["-e", needle]);
    expect(grep(["-F", ...pattern], ["etc", "usr/lib/svc", "var"])).toBe("");
    expect(
      grep(["-e", "^-----BEGIN .*PRIVATE KEY-----"], ["etc", "root", "var", "usr/lib/svc", "usr/share"]),
    ).toBe("");
    expect(
      find("(", "-name", "id_rsa*", "-o", "-name", "*.key", "-o", "-name", "authorized_keys", ")"),
    ).toEqual([]);
  });

  it("has no link that leads nowhere among the commands and libraries", () => {
    const broken = find("-xtype", "l", "(", "-path", "./usr/bin/*", "-o", "-path", "./usr/lib/*.so*", ")");
    const missing = broken.filter((path) => {
      const target = readlinkSync(join(rootfs, path));
      return !target.startsWith("/") || find("-path", `.${target}`).length === 0;
    });
    expect(missing).toEqual([]);
  });

  it("has every Python module compiled, without a check of its source at each import", async () => {
    const { stdout } = await run("python", { code: FIND_UNCOMPILED });
    expect(stdout).toBe("0 uncompiled, 0 checked\n");
  });

  it("stays below 1 GB", () => {
    const megabytes = Number(execFileSync("du", ["-smx", rootfs], { encoding: "utf8" }).split("\t")[0]);
    expect(megabytes).toBeLessThan(1000);
  });
});

describe("commands that the image lacks", () => {
  it.each([
    [
      "pip",
      "install requests",
      /no network in this sandbox[\s\S]*Installed for Python: .*\bnumpy \d[\s\S]*\bpandas \d.*\.\n$/,
    ],
    ["pip3", "install x", /^pip3: there is no network/],
    ["npm", "i x", /no network[\s\S]*own modules/],
    [
      "curl",
      "https://example.org",
      /^curl: there is no network in this sandbox\. Files come with the request/,
    ],
    ["wget", "x", /^wget: there is no network/],
    ["apt-get", "install -y jq", /^apt-get: [\s\S]*Installed commands: awk, bash, .*\bjq\b.*, zstd\.\n$/],
    ["sudo", "ls", /^sudo: programs in this sandbox have no other rights/],
  ])("%s says why, names what there is, and fails", async (name, args, text) => {
    const { stdout, stderr, exitCode } = await run("bash", { code: `${name} ${args}` });
    expect([stdout, exitCode]).toEqual(["", 1]);
    expect(stderr).toMatch(text);
  });

  it("a stand-in does what it does under a hostile name or environment", async () => {
    const code = `ln -s /usr/bin/pip './$(id)'; PATH=.:$PATH; cd /mnt/data; './$(id)'; IFS=x lists=/etc /usr/bin/pip`;
    const { stdout, stderr } = await run("bash", { code });
    expect(stdout).toBe("");
    expect(stderr).toMatch(/^\$\(id\): there is no network[\s\S]*Installed for Python: /);
  });

  it("only names without a command of their own have one", () => {
    const standIns = find("-path", "./usr/bin/*", "-lname", "../lib/svc/absent").map((path) =>
      path.slice(10),
    );
    expect(standIns.sort()).toEqual(["apt", "apt-get", "curl", "npm", "npx", "pip", "pip3", "sudo", "wget"]);
  });
});

describe("runtimes.json", () => {
  it("tells of packages with their versions and of commands that are there", () => {
    const { packages = [] } = runtimes.find(({ language }) => language === "python") ?? {};
    for (const name of ["numpy", "pandas", "matplotlib", "scipy", "openpyxl", "requests"]) {
      expect(packages).toContainEqual({ name, version: expect.stringMatching(/^\d+\.\d/) });
    }
    expect(commands).toEqual(expect.arrayContaining(["git", "jq", "python3", "sqlite3", "zip"]));
    for (const name of ["pip", "curl", "gcc"]) expect(commands).not.toContain(name);
  });

  it("has languages of the interface, with the interface's entry files", () => {
    expect(runtimes.map(({ language }) => language)).toEqual([
      "bash",
      "javascript",
      "node",
      "python",
      "typescript",
    ]);
    for (const { language, entry } of runtimes) {
      expect(LANGUAGES.find(({ runner }) => runner === language)?.entry).toBe(entry);
    }
  });

  it("has commands that are in the image, name the entry file once, and versions that the commands report", async () => {
    for (const { command, version } of runtimes) {
      expect(find("-path", `.${command[0]}`)).toHaveLength(1);
      expect(command.filter((part) => part === "{entry}")).toHaveLength(1);
      expect(version).toMatch(/^\d+\.\d+\.\d+$/);
    }
    const { stdout } = await run("bash", { code: "python3 --version; node --version; echo $BASH_VERSION" });
    const [python, node, bash] = stdout.split("\n");
    const versionOf = (name: string) => runtimes.find(({ language }) => language === name)?.version;
    expect([python, node]).toEqual([`Python ${versionOf("python")}`, `v${versionOf("node")}`]);
    expect(bash?.startsWith(versionOf("bash") ?? "?")).toBe(true);
  });

  it("gives programs an environment that changes no behaviour of Node.js or Python", () => {
    for (const { env } of runtimes) {
      expect(Object.keys(env).sort()).toEqual([
        "HOME",
        "LANG",
        "LOGNAME",
        "OMP_NUM_THREADS",
        "PATH",
        "SHELL",
        "USER",
      ]);
      expect(env).toMatchObject({ HOME: "/mnt/data", LANG: "C.UTF-8" });
    }
  });
});

function grep(options: string[], paths: string[]): string {
  try {
    return execFileSync("grep", ["-rIl", ...options, ...paths], { cwd: rootfs, encoding: "utf8" });
  } catch (error) {
    if ((error as { status?: number }).status === 1) return "";
    throw error;
  }
}

const LIST_CAPABILITIES = `
import os, sys
for folder, _, names in os.walk(sys.argv[1]):
    for name in names:
        path = os.path.join(folder, name)
        if not os.path.islink(path) and "security.capability" in os.listxattr(path): print(path)
`;

const FIND_UNCOMPILED = `
import importlib.util, pathlib, sysconfig
uncompiled = checked = 0
for root in (sysconfig.get_path("stdlib"), "/usr/lib/python3/dist-packages"):
    for source in pathlib.Path(root).rglob("*.py"):
        code = pathlib.Path(importlib.util.cache_from_source(source))
        try:
            text = compile(source.read_bytes(), str(source), "exec", dont_inherit=True) if not code.exists() else None
        except (SyntaxError, ValueError):
            continue
        if not code.exists(): uncompiled += 1
        elif code.read_bytes()[4:8] != bytes([1, 0, 0, 0]): checked += 1
print(f"{uncompiled} uncompiled, {checked} checked")
`;
