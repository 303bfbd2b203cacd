import { runComponent } from "@svc/service-kit";
import { startFileServer } from "./server.ts";

await runComponent("file-server", startFileServer);
