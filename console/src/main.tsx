/** The page: asks for a credential where the service wants one, then shows the console. A credential stays in this page's memory. */
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Svc } from "../../packages/client/src/svc.ts";
import { Console } from "./console.tsx";
import { isRefused, Login, NOT_ACCEPTED } from "./login.tsx";
import { textOf } from "./text-of.ts";

/** The one that was given last. Each request takes it, also one for a file that came with an earlier one. */
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
        // Before a credential was given there is nothing wrong with it.
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
