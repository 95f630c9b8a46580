// `ruvllm` for the shells of a test, run by the test's own process: a new one takes two seconds to load what is loaded here.
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { runCommand } from './run-command.ts';

const quoted = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;

/** The lines of `env`; only the first line of a value. */
const readEnvironment = (text: string): NodeJS.ProcessEnv =>
  Object.fromEntries([...text.matchAll(/^(\w+)=(.*)$/gm)].map(([, name, value]) => [name, value]));

/**
 * Writes the command: it sends its words, folder, variables and input here, and the answer is what it prints. This process changes to the
 * folder of the command.
 */
export async function writeShellCommand(path: string): Promise<Disposable> {
  const server = createServer(async (request, response) => {
    const body = new Response(await buffer(request), { headers: { 'content-type': request.headers['content-type']! } });
    const form = await body.formData();
    const text = (name: string): string => String(form.get(name));
    process.chdir(text('folder'));
    const { status, stdout, stderr } = await runCommand(form.getAll('word').map(String), {
      environment: readEnvironment(text('environment')),
      input: await (form.get('input') as File).text(),
    });
    response.end(`printf %s ${quoted(stdout)}\nprintf %s ${quoted(stderr)} >&2\nexit ${status}\n`);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const script = `#!/bin/sh
for word in "$@"; do set -- "$@" --form-string "word=$word"; shift; done
reply=$(curl -sSf --form-string "folder=$PWD" --form-string "environment=$(env)" -F input=@- "$@" http://127.0.0.1:${port}) || exit 70
eval "$reply"
`;
  writeFileSync(path, script, { mode: 0o755 });
  return { [Symbol.dispose]: () => void server.close() };
}
