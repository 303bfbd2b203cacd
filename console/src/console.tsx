/** The editor, a run with its live output and its files, and the jobs and sessions that the service keeps. */
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { RunEvent } from "../../packages/client/src/events.ts";
import type { Result, UploadedFile } from "../../packages/client/src/results.ts";
import type { Svc } from "../../packages/client/src/svc.ts";
import { type Editor, makeEditor } from "./editor.ts";
import { EXAMPLES } from "./examples.ts";
import { Facts } from "./facts.tsx";
import { Files } from "./files.tsx";
import { JobsList, SessionsList } from "./kept.tsx";
import { isRefused } from "./login.tsx";
import { Output } from "./output.ts";
import { OutputView } from "./output-view.tsx";
import { Request } from "./request.tsx";
import { endOf, follow } from "./run.ts";
import { textOf } from "./text-of.ts";

interface ConsoleProps {
  svc: Svc;
  languages: string[];
  hasToken: boolean;
  keepsSessions: boolean;
  /** The service no longer accepts the credential. The content of the page stays. */
  onRefused: () => void;
}

export function Console({ svc, languages, hasToken, keepsSessions, onRefused }: ConsoleProps) {
  const [output] = useState(() => new Output());
  const editor = useRef<Editor | undefined>(undefined);
  const stop = useRef<AbortController | undefined>(undefined);
  const run = useRef(() => {});
  const [language, setLanguage] = useState(languages.includes("python") ? "python" : (languages[0] ?? ""));
  const [state, setState] = useState("Ready");
  const [isRunning, setRunning] = useState(false);
  const [result, setResult] = useState<Result>();
  const [uploads, setUploads] = useState<UploadedFile[]>([]);
  const [session, setSession] = useState("");
  const failed = (error: unknown) => {
    setState(`Error: ${textOf(error)}`);
    if (isRefused(error)) onRefused();
  };
  const code = () => editor.current?.text() ?? "";
  const program = () => ({
    language,
    code: code(),
    files: uploads,
    ...(session === "" ? {} : { runtime_session_hint: session }),
  });

  const show = (eventsOf: (signal: AbortSignal) => AsyncIterable<RunEvent>, stopped: string) => {
    if (stop.current !== undefined) return;
    const ending = new AbortController();
    stop.current = ending;
    output.clear();
    setRunning(true);
    setResult(undefined);
    setState("Running");
    follow(eventsOf(ending.signal), output)
      .then(
        (ended) => {
          setResult(ended);
          setState(endOf(ended));
        },
        (error) => (ending.signal.aborted ? setState(stopped) : failed(error)),
      )
      .finally(() => {
        stop.current = undefined;
        setRunning(false);
      });
  };
  run.current = () => show((signal) => svc.stream(program(), { signal }), "Stopped");
  const runAsJob = () =>
    void svc.jobs
      .create(program())
      .then(({ job_id }) => setState(`Job ${job_id} was made: see Jobs`), failed);
  // Synchronously, because the next key may run the program.
  useLayoutEffect(() => {
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
        <button
          type="button"
          disabled={isRunning}
          onClick={() => {
            output.clear();
            setResult(undefined);
            setState("Ready");
          }}
        >
          Clear
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
          <input
            type="file"
            multiple
            onChange={(event) => {
              take(event.currentTarget.files);
              // Browsers report only a different choice, so forget this one: the same file may be chosen again after a change.
              event.currentTarget.value = "";
            }}
          />
        </label>
      </p>
      <div
        ref={(place) => {
          if (place !== null) editor.current ??= makeEditor(place, () => run.current());
        }}
      />
      <p role="status">{state}</p>
      <OutputView output={output} isRunning={isRunning} />
      <Files title="Files of the run" files={result?.files ?? []} onError={failed} />
      {result !== undefined && <Facts result={result} />}
      <Files
        title="Uploads"
        files={uploads}
        onError={failed}
        onRemove={(gone) => setUploads((known) => known.filter(({ id }) => id !== gone))}
      />
      <Request
        asked={() => ({ language, code: code(), files: uploads, ...(session === "" ? {} : { session }) })}
        hasToken={hasToken}
      />
      <JobsList
        svc={svc}
        onShow={(id) =>
          show((signal) => svc.jobs.events(id, { signal }), "Not shown any more; the job goes on")
        }
        onError={failed}
      />
      {keepsSessions && <SessionsList svc={svc} onChoose={setSession} onError={failed} />}
    </div>
  );
}
