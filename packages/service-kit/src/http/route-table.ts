/** Remembers the registered routes, to tell a wrong method (405 with Allow) from an unknown route (404). */
import type { RouteOptions } from "fastify";
import type { HttpServer } from "./types.ts";

interface Entry {
  pattern: RegExp;
  methods: Set<string>;
}

/** A registered route. `url` contains the names of its parameters. */
export interface Route {
  url: string;
  methods: string[];
}

export interface RouteTable {
  methodsOf: (url: string) => string[];
  /** The registered route for prefix plus path, if any. */
  findBelow: (prefix: string, url: string) => Route | undefined;
}

export function routeTable(app: HttpServer): RouteTable {
  const entries = new Map<string, Entry>();
  app.addHook("onRoute", (route: RouteOptions) => {
    const entry = entries.get(route.url) ?? { pattern: toPattern(route.url), methods: new Set<string>() };
    for (const method of [route.method].flat()) entry.methods.add(method);
    entries.set(route.url, entry);
  });
  return {
    methodsOf: (url) => {
      const path = url.split("?", 1)[0] ?? "";
      const methods = new Set<string>();
      for (const { pattern, methods: own } of entries.values()) {
        if (pattern.test(path)) for (const method of own) methods.add(method);
      }
      return [...methods].sort();
    },
    findBelow: (prefix, url) => {
      const path = prefix + (url.split("?", 1)[0] ?? "");
      const found = [...entries].find(([, { pattern }]) => pattern.test(path));
      return found && { url: found[0], methods: [...found[1].methods].sort() };
    },
  };
}

function toPattern(url: string): RegExp {
  const source = url
    .split("/")
    .map((segment) => (segment.startsWith(":") ? "[^/]+" : segment.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")))
    .join("/");
  return new RegExp(`^${source}$`);
}
