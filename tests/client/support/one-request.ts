/** For a process of its own: runs a program by LibreChat's client, with LibreChat's settings in the environment, and prints what the model reads. */
import { Conversation } from "./conversation.ts";
import { libreChat } from "./librechat.ts";

const { baseUrl, headers } = libreChat(process.env);
const chat = new Conversation({ url: baseUrl, headers: () => headers("ada") });
console.log((await chat.python("print(6 * 7)")).text);
