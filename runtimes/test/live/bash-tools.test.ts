import { describe, expect, it } from "vitest";
import {
  brokenAnswers,
  echo,
  fails,
  runWithTools,
  type ToolProgram,
  together,
  value,
} from "./support/tools.ts";

const tools = { get_weather: echo, value, fails };
const bash = (code: string, job: Partial<ToolProgram> = {}) => runWithTools("bash", { code, tools, ...job });
const stdoutOf = async (code: string, job: Partial<ToolProgram> = {}) => {
  const { stdout, stderr, exitCode } = await bash(code, job);
  expect({ stderr, exitCode }).toEqual({ stderr: "", exitCode: 0 });
  return stdout;
};

describe("a tool in Bash", () => {
  it("takes a JSON object and prints its result as one compact line", async () => {
    const { stdout, calls } = await bash(`r=$(get_weather '{"city": "Köln ☃"}'); echo "<$r>"; get_weather`);
    expect(stdout).toBe('<{"city":"Köln ☃"}>\n{}\n');
    expect(calls).toEqual([
      { name: "get_weather", input: { city: "Köln ☃" } },
      { name: "get_weather", input: {} },
    ]);
  });

  it.each([["null"], ["true"], ["-1.5e-7"], ['"a \\"quoted\\"\\n line"'], ["[]"], ['{"a":[1,{"b":null}]}']])(
    "prints %s as it is",
    async (json) => {
      expect(await stdoutOf('value "$1"', { args: [`{"value":${json}}`] })).toBe(`${json}\n`);
    },
  );

  it("that fails returns 1 with its message on standard error and nothing on standard output", async () => {
    const { stdout, stderr, exitCode } = await bash(
      "fails '{}' || echo \"or $?\"; if fails; then echo yes; else echo no; fi; ! fails 2>/dev/null && echo not; fails",
    );
    expect(stdout).toBe("or 1\nno\nnot\n");
    expect(stderr).toBe("out of stock: é\n".repeat(3));
    expect(exitCode).toBe(1);
  });

  it.each([["''"], ["'{\"a\":'"], ["'[1]'"], ["5"], ['{"a": 1}'], ["'{}' '{}'"]])(
    "called with %s says that it takes a JSON object: status 2, no call",
    async (given) => {
      const { stdout, stderr, exitCode, calls } = await bash(`get_weather ${given}`);
      expect({ stdout, exitCode, calls }).toEqual({ stdout: "", exitCode: 2, calls: [] });
      expect(stderr).toMatch(/^get_weather: .*JSON object/);
    },
  );

  it("carries a megabyte both ways and fails cleanly above it", async () => {
    const { stdout, stderr, exitCode, calls } = await bash(
      `x=$(head -c 1000000 /dev/zero | tr '\\0' x); r=$(value '{"value":"'"$x"'"}'); echo "\${#r}"
       x=$x$x; value '{"value":"'"$x"'"}'; echo $?`,
    );
    expect({ stdout, exitCode }).toEqual({ stdout: "1000002\n1\n", exitCode: 0 });
    expect(stderr).toBe("value: the call has more than 1048576 bytes\n");
    expect(calls).toHaveLength(1);
  });

  it.each(brokenAnswers)("fails when the connection is lost after %j", async (raw) => {
    const { stdout, stderr, exitCode } = await bash("gone", { tools: { gone: () => ({ raw }) } });
    expect({ stdout, exitCode }).toEqual({ stdout: "", exitCode: 1 });
    expect(stderr).toMatch(/^gone: the connection was lost before the tool answered\n$|^gone: \{\}\n$/);
  });

  it("takes an answer that ends with its connection", async () => {
    const raw = "HTTP/1.1 200 OK\r\n\r\n[1]";
    expect(await stdoutOf("late", { tools: { late: () => ({ raw }) } })).toBe("[1]\n");
  });
});

describe("the shell around a tool", () => {
  it("stops at a failing tool under set -euo pipefail, and not before", async () => {
    const { stdout, stderr, exitCode } = await bash(
      "set -euo pipefail; get_weather; get_weather '{\"a\":1}' | cat; x=$(fails) ; echo unreached",
    );
    expect(stdout).toBe('{}\n{"a":1}\n');
    expect({ stderr, exitCode }).toEqual({ stderr: "out of stock: é\n", exitCode: 1 });
  });

  it("runs calls as background jobs, all of them outstanding at once, and waits for each", async () => {
    const { stdout, stderr } = await bash(
      `for i in {1..20}; do together '{"n":"done"}' >out.$i & pids+=($!); done; wait "\${pids[@]}"; cat out.* | sort | uniq -c`,
      { tools: { together: together(20) } },
    );
    expect({ stdout: stdout.trim(), stderr }).toEqual({ stdout: '20 "done"', stderr: "" });
  });

  it("keeps $!, wait and the jobs of the program to itself", async () => {
    expect(
      await stdoutOf(
        '(exit 7) & p=$!; get_weather >/dev/null; [[ $! == "$p" ]] && echo same; wait "$p"; echo $?; jobs',
      ),
    ).toBe("same\n7\n");
  });

  it("is not disturbed by a prefix of its caller's client", async () => {
    expect(await stdoutOf(': &\nwait "$!"\nget_weather')).toBe("{}\n");
  });

  it("pipes results, reads standard input itself, and loops", async () => {
    expect(
      await stdoutOf('while read -r n; do value "{\\"value\\":$n}" | jq ". * 2"; done', {
        stdin: "1\n2\n3\n",
      }),
    ).toBe("2\n4\n6\n");
  });

  it("may change IFS, options, positional parameters and functions", async () => {
    expect(
      await stdoutOf(
        [
          "IFS='{\":,}'; set -f -o noclobber -o posix; set -- a b",
          'cat() { echo mine; }; command() { echo mine; }; read() { echo mine; }; local_call() { local r; r=$(get_weather "$1"); printf \'%s\\n\' "$r"; }',
          'local_call \'{"city":"a:b,c"}\'; echo "$1$2"',
        ].join("\n"),
      ),
    ).toBe('{"city":"a:b,c"}\nab\n');
  });

  it("keeps its traps", async () => {
    const { stdout, stderr, exitCode } = await bash(
      "trap 'echo bye' EXIT; trap 'echo err $LINENO' ERR; get_weather\nfails\necho on; exit 5",
    );
    expect(stdout).toBe("{}\nerr 2\non\nbye\n");
    expect({ stderr, exitCode }).toEqual({ stderr: "out of stock: é\n", exitCode: 5 });
  });

  it("gives its children the tools: subshells, bash -c, xargs; not sh", async () => {
    expect(
      await stdoutOf(
        `(get_weather); bash -c 'get_weather "$1"' x '{"a":1}'; printf '%s\\n' 1 2 | xargs -I{} bash -euc 'value "{\\"value\\":{}}"'
         sh -c 'get_weather 2>/dev/null || echo none'`,
      ),
    ).toBe('{}\n{"a":1}\n1\n2\nnone\n');
  });

  it("prints what the program and its tools print in order", async () => {
    expect(
      await stdoutOf("echo 1; value '{\"value\":2}'; echo 3 | cat; value '{\"value\":4}'; printf '5\\n'"),
    ).toBe("1\n2\n3\n4\n5\n");
  });

  it("looks as it does without tools: variables, options, $_, $?, descriptors, line numbers, traps", async () => {
    const code = [
      `echo "$_ $? $LINENO $# $0 \${BASH_SOURCE[*]} $- $SHELLOPTS $BASHOPTS"; [[ $_ ]]`,
      `names=$(compgen -v); echo \${names//BASH_ENV}; trap -p; ls /proc/$$/fd; declare -p IFS; false; echo $?`,
    ].join("\n");
    const command = ["/usr/bin/bash", "script.sh"];
    for (const options of [[], ["-e", "-u", "-o", "pipefail"], ["-x"]]) {
      const job = { command: [command[0] as string, ...options, "script.sh"] };
      const with_ = await bash(code, job);
      const without = await bash(code, { ...job, env: { BASH_ENV: "/dev/null" } });
      expect({ ...with_, calls: [] }).toEqual({ ...without, calls: [] });
    }
  });
});

describe("names in Bash", () => {
  it("reach every tool, whatever it is called", async () => {
    const names = [
      "get-weather.v2",
      "9lives",
      "if",
      "export",
      "ünï",
      "a'b\"c$(touch pwned)`x`",
      "x\ty\nz",
      "☃",
    ];
    const { stdout, stderr, calls } = await bash(
      "get_weather_v2; _9lives; if_tool; export_tool; n; abctouch_pwnedx; x_y_z; tool; ls",
      { tools: Object.fromEntries(names.map((name) => [name, echo])) },
    );
    expect({ stdout, stderr }).toEqual({ stdout: `${"{}\n".repeat(names.length)}script.sh\n`, stderr: "" });
    expect(calls.map(({ name }) => name)).toEqual(names);
  });
});

describe("a tool named like a builtin or command", () => {
  const shared = {
    echo: echo,
    wait: echo,
    read: echo,
    test: echo,
    kill: echo,
    cat: echo,
    command: echo,
    eval: echo,
  };

  it("is called by a JSON object; everything else goes to the builtin or command", async () => {
    const { stdout, stderr, exitCode, calls } = await bash(
      [
        "echo '{\"a\":1}'; echo plain; echo '{not json}'; echo -n '{}' x; echo",
        'read -r line <<<\'from read\'; echo "$line"; read -r <<<reply; echo "$REPLY"; read \'{"b":2}\'',
        "(exit 3) & wait $! || echo \"wait $?\"; wait; wait '{}'",
        "test 1 -eq 1 && echo equal; test a = b || echo differs; [ 1 = 1 ] && test '{\"t\":1}'",
        "sleep 60 & kill $!; wait $! || echo \"killed $?\"; printf x | cat; echo; cat '{}'; echo_tool; cat_tool '{\"c\":3}'",
        "command echo through; set -- 1 2; eval 'echo $2'; eval_tool",
      ].join("\n"),
      { tools: shared },
    );
    expect(stderr).toBe("");
    expect(stdout).toBe(
      [
        '{"a":1}\nplain\n{not json}\n{} x\nfrom read\nreply\n{"b":2}\nwait 3\n{}\nequal\ndiffers\n{"t":1}\nkilled 143',
        'x\n{}\n{}\n{"c":3}\nthrough\n2\n{}\n',
      ].join("\n"),
    );
    expect(exitCode).toBe(0);
    expect(calls.map(({ name }) => name)).toEqual([
      "echo",
      "read",
      "wait",
      "test",
      "cat",
      "echo",
      "cat",
      "eval",
    ]);
  });

  it("fails like any other, and only its own status 2 falls back", async () => {
    const { stdout, stderr } = await bash("echo '{}' || printf 'status %s\\n' $?", {
      tools: { echo: fails },
    });
    expect({ stdout, stderr }).toEqual({ stdout: "status 1\n", stderr: "out of stock: é\n" });
  });
});
