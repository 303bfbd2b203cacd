/** The page: asks for a credential if the service demands one, then shows the console. The credential stays in the memory of the page. */
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Svc } from "../../packages/client/src/svc.ts";
import { Console } from "./console.tsx";
import { isRefused, Login, NOT_ACCEPTED } from "./login.tsx";
import { textOf } from "./text-of.ts";

/** The newest credential. Every request uses it, also a request for a file of a run that was made with an earlier one. */
let token: string | undefined;

const svc = new Svc({
  baseUrl: location.origin,
  fetch: (url, init) => {
    const headers = new Headers(init?.headers);
    if (token !== undefined) headers.set("authorization", `Bearer ${token}`);
    return fetch(url, { ...init, headers });
  },
});

function Page() {
  const [given, setGiven] = useState(0);
  const [keepsSessions, setKeepsSessions] = useState(false);
  const [languages, setLanguages] = useState<string[]>();
  const [wantsToken, setWantsToken] = useState(false);
  const [error, setError] = useState<string>();
  const askAgain = () => {
    setWantsToken(true);
    setError(NOT_ACCEPTED);
  };
  useEffect(() => {
    setError(undefined);
    svc.languages().then(
      (all) => {
        setWantsToken(false);
        setLanguages(all.filter(({ status }) => status === "ready").map(({ name }) => name));
        svc.sessions.list().then(
          () => setKeepsSessions(true),
          () => setKeepsSessions(false),
        );
      },
      (problem) => {
        // Without a credential, the refusal is no error to show.
        if (!isRefused(problem)) setError(textOf(problem));
        else if (token === undefined) setWantsToken(true);
        else askAgain();
      },
    );
  }, [given]);
  return (
    <main>
      <h1>Console</h1>
      {error !== undefined && <p role="alert">{error}</p>}
      {wantsToken && (
        <Login
          onToken={(credential) => {
            token = credential;
            setGiven(given + 1);
          }}
        />
      )}
      {languages !== undefined && (
        <Console
          svc={svc}
          languages={languages}
          hasToken={token !== undefined}
          keepsSessions={keepsSessions}
          onRefused={askAgain}
        />
      )}
    </main>
  );
}

render(<Page />, document.body);
