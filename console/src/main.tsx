/** The console: an editor, a run with its output while it comes, and files. A credential stays in this page's memory. */
import { render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { SvcError } from "../../packages/client/src/error.ts";
import type { RunEvent } from "../../packages/client/src/events.ts";
import type { Result, UploadedFile } from "../../packages/client/src/results.ts";
import { Svc } from "../../packages/client/src/svc.ts";
import { type Editor, makeEditor } from "./editor.ts";
import { EXAMPLES } from "./examples.ts";
import { Facts } from "./facts.tsx";
import { Files, save } from "./files.tsx";
import { JobsList, SessionsList } from "./kept.tsx";
import { Output, SHOWN_CHARS } from "./output.ts";
import { Request } from "./request.tsx";
import { endOf, follow } from "./run.ts";

const clientOf = (token?: string) => new Svc({ baseUrl: location.origin, token });
const textOf = (error: unknown) => (error instanceof Error ? error.message : String(error));

function Login({ onToken }: { onToken: (token: string) => void }) {
  const [token, setToken] = useState("");
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        onToken(token.trim());
      }}
    >
      <label>
        API key or access token{" "}
        <input type="password" autocomplete="off" onInput={(event) => setToken(event.currentTarget.value)} />
      </label>{" "}
      <button type="submit">Continue</button>
    </form>
  );
}

interface ConsoleProps {
  svc: Svc;
  languages: string[];
  hasToken: boolean;
  keepsSessions: boolean;
}

function Console({ svc, languages, hasToken, keepsSessions }: ConsoleProps) {
  const editor = useRef<Editor | undefined>(undefined);
  const output = useRef<Output | undefined>(undefined);
  const stop = useRef<AbortController | undefined>(undefined);
  const run = useRef(() => {});
  const [language, setLanguage] = useState(languages.includes("python") ? "python" : (languages[0] ?? ""));
  const [state, setState] = useState("Ready");
  const [isRunning, setRunning] = useState(false);
  const [result, setResult] = useState<Result>();
  const [uploads, setUploads] = useState<UploadedFile[]>([]);
  const [session, setSession] = useState("");
  const failed = (error: unknown) => setState(`Error: ${textOf(error)}`);
  const code = () => editor.current?.text() ?? "";
  const program = () => ({
    language,
    code: code(),
    files: uploads,
    ...(session === "" ? {} : { runtime_session_hint: session }),
  });

  const show = (eventsOf: (signal: AbortSignal) => AsyncIterable<RunEvent>) => {
    if (stop.current !== undefined || output.current === undefined) return;
    const ending = new AbortController();
    stop.current = ending;
    output.current.clear();
    setRunning(true);
    setResult(undefined);
    setState("Running");
    follow(eventsOf(ending.signal), output.current)
      .then(
        (ended) => {
          setResult(ended);
          setState(endOf(ended));
        },
        (error) => (ending.signal.aborted ? setState("Stopped") : failed(error)),
      )
      .finally(() => {
        stop.current = undefined;
        setRunning(false);
      });
  };
  run.current = () => show((signal) => svc.stream(program(), { signal }));
  const runAsJob = () =>
    void svc.jobs
      .create(program())
      .then(({ job_id }) => setState(`Job ${job_id} was made: see Jobs`), failed);
  useEffect(() => {
    editor.current?.speak(language);
    editor.current?.show(EXAMPLES[language] ?? "");
  }, [language]);
  const upload = async (files: Iterable<File>) => {
    for (const file of files) {
      const stored = await svc.upload(file);
      setUploads((known) => [...known.filter(({ name }) => name !== stored.name), stored]);
    }
  };
  useEffect(() => {
    const stay = (event: DragEvent) => event.preventDefault();
    const drop = (event: DragEvent) => {
      event.preventDefault();
      take(event.dataTransfer?.files);
    };
    addEventListener("dragover", stay);
    addEventListener("drop", drop);
    return () => {
      removeEventListener("dragover", stay);
      removeEventListener("drop", drop);
    };
  }, []);
  const take = (files: FileList | null | undefined) => void upload([...(files ?? [])]).catch(failed);
  return (
    <div>
      <p class="bar">
        <label>
          Language{" "}
          <select
            value={language}
            disabled={isRunning}
            onChange={(event) => setLanguage(event.currentTarget.value)}
          >
            {languages.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <button type="button" disabled={isRunning} onClick={() => run.current()}>
          Run (Ctrl+Enter)
        </button>
        <button type="button" disabled={!isRunning} onClick={() => stop.current?.abort()}>
          Stop
        </button>
        <button type="button" onClick={runAsJob}>
          Run as job
        </button>
        {keepsSessions && (
          <label>
            Session{" "}
            <input value={session} size={12} onInput={(event) => setSession(event.currentTarget.value)} />
          </label>
        )}
        <label>
          Add files (or drop them here){" "}
          <input type="file" multiple onChange={(event) => take(event.currentTarget.files)} />
        </label>
      </p>
      <div
        ref={(place) => {
          if (place !== null) editor.current ??= makeEditor(place, () => run.current());
        }}
      />
      <p role="status">{state}</p>
      <section aria-label="Output">
        <pre
          // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
          tabIndex={0}
          ref={(place) => {
            if (place !== null) output.current ??= new Output(place);
          }}
        />
      </section>
      {result !== undefined && output.current?.isCut && (
        <p>
          Only the first {SHOWN_CHARS.toLocaleString("en")} characters are shown.{" "}
          <button type="button" onClick={() => save("output.txt", output.current?.whole ?? "")}>
            Download the whole
          </button>
        </p>
      )}
      <Files title="Files of the run" files={result?.files ?? []} onError={failed} />
      {result !== undefined && <Facts result={result} />}
      <Files title="Uploads" files={uploads} onError={failed} />
      <Request
        asked={() => ({ language, code: code(), files: uploads, ...(session === "" ? {} : { session }) })}
        hasToken={hasToken}
      />
      <JobsList
        svc={svc}
        onShow={(id) => show((signal) => svc.jobs.events(id, { signal }))}
        onError={failed}
      />
      {keepsSessions && <SessionsList svc={svc} onChoose={setSession} onError={failed} />}
    </div>
  );
}

function Page() {
  const [token, setToken] = useState<string>();
  const [svc, setSvc] = useState(() => clientOf());
  const [keepsSessions, setKeepsSessions] = useState(false);
  const [languages, setLanguages] = useState<string[]>();
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    setError(undefined);
    svc.languages().then((all) => {
      setLanguages(all.filter(({ status }) => status === "ready").map(({ name }) => name));
      svc.sessions.list().then(
        () => setKeepsSessions(true),
        () => setKeepsSessions(false),
      );
    }, setError);
  }, [svc]);
  const wantsToken = error instanceof SvcError && error.status === 401;
  return (
    <main>
      <h1>Console</h1>
      {error !== undefined && <p role="alert">{textOf(error)}</p>}
      {wantsToken && (
        <Login
          onToken={(given) => {
            setToken(given);
            setSvc(clientOf(given));
          }}
        />
      )}
      {languages !== undefined && error === undefined && (
        <Console
          svc={svc}
          languages={languages}
          hasToken={token !== undefined}
          keepsSessions={keepsSessions}
        />
      )}
    </main>
  );
}

render(<Page />, document.body);
