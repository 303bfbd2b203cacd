/** Normalizes the address of a service that a person types. Pure. */
import { Problem, USAGE_EXIT_CODE } from "./problem.ts";

/**
 * Accepts an address with or without scheme and /v1. Returns it without a final slash and without /v1. `option`: the option
 * that holds it.
 */
export function serviceAddress(text: string, option = "--url"): string {
  const full = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`;
  const url = URL.canParse(full) ? new URL(full) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw refused(`${option} is not the address of a service: ${text}`);
  }
  if (url.username !== "" || url.password !== "") {
    throw refused(`${option} holds a user or a password`, "Pass a token with --token or SVC_TOKEN.");
  }
  if (url.search !== "" || url.hash !== "") throw refused(`${option} ends with its path: ${text}`);
  return `${url.origin}${url.pathname.replace(/\/+$/, "").replace(/\/v1$/, "")}`;
}

function refused(message: string, advice = "Examples: 127.0.0.1:3112, https://code.example.com"): Problem {
  return new Problem(message, advice, USAGE_EXIT_CODE);
}
