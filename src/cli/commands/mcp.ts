import { failureOf, RPC_CODES } from '../../mcp/json-rpc.ts';
import { createMcpServer, type McpServer } from '../../mcp/server.ts';
import type { Model } from '../../runtime/model.ts';
import { createOwnTools, OWN_INSTRUCTIONS } from '../../runtime/tools/own-tools.ts';
import { readLines } from '../chat/read-lines.ts';
import type { CommandContext, CommandRunner, HelpParts } from '../command.ts';
import { defineFlags, type Flag } from '../flags.ts';
import { loadWithProgress } from '../load-model.ts';
import { checkServerFlags, CLIENT_FLAGS, openClient } from '../memory/client.ts';
import { EMBEDDER_FLAG, PROJECTION_FLAG } from '../memory/embedder-flag.ts';
import { bridgeToServer } from '../mcp/bridge-to-server.ts';
import { readServer } from '../servers/ask-server.ts';

export const flags: readonly Flag[] = [
  ...CLIENT_FLAGS,
  ...defineFlags({
    '--generate <model>': 'model of the tool generate; loaded by its first call (without --url)',
    '--read-only': 'offer only tools that read (without --url)',
  }),
];

export const help: HelpParts = {
  notes:
    'Speaks MCP on stdin and stdout; other programs start it as a command. Tools: memory_search, memory_add, memory_list, memory_get, memory_remove, audit_search, audit_verify and generate; with --url also route_explain, and only those that the API key allows.',
};

/** An MCP server for other agents, on the standard streams. */
export const run: CommandRunner = async (context) => {
  const local = [
    '--memory',
    '--model',
    EMBEDDER_FLAG.name,
    PROJECTION_FLAG.name,
    '--tenant',
    '--generate',
    '--read-only',
  ];
  if (checkServerFlags(context, local)) {
    return serveLines(context, bridgeToServer(readServer(context)));
  }
  const { values } = context;
  const client = await openClient(context, { needsModel: true, canOmitModel: true, canCreate: true });
  const reference = values['--generate'] as string | undefined;
  let loading: Promise<Model> | null = null;
  const load = (): Promise<Model> => (loading ??= loadWithProgress(context, reference!, {}, {}));
  const tools = createOwnTools({
    canWrite: values['--read-only'] !== true,
    call: (name, input) => client.call<object>(name, input),
    explain: null,
    generate:
      reference === undefined
        ? null
        : async ({ prompt, system, maxTokens, temperature }, signal) => {
            const turns = [{ role: 'user' as const, content: prompt }];
            const messages = system === undefined ? turns : [{ role: 'system' as const, content: system }, ...turns];
            const options = {
              maxTokens,
              clampMaxTokens: true,
              signal,
              ...(temperature === undefined ? {} : { temperature }),
            };
            return (await (await load()).generate(messages, options)).text;
          },
  });
  try {
    await serveLines(
      context,
      createMcpServer(tools, {
        version: context.version,
        instructions: OWN_INSTRUCTIONS,
        report: (error) => context.output.note(String((error as Error)?.stack ?? error)),
      }),
    );
  } finally {
    await (loading as Promise<Model> | null)?.then((model) => model.dispose()).catch(() => {});
    await client.close();
  }
};

/** Answers until the input ends or a signal comes; calls run side by side. */
async function serveLines({ io }: CommandContext, server: McpServer): Promise<void> {
  const open = new Set<Promise<void>>();
  const answer = async (line: string): Promise<void> => {
    const value = parse(line);
    const reply = value === undefined ? NO_JSON : await server.handle(value, io.signal);
    if (reply !== null) io.stdout.write(`${JSON.stringify(reply)}\n`);
  };
  try {
    for await (const line of readLines(io.stdin, io.signal)) {
      if (line.trim() === '') continue;
      const work = answer(line);
      open.add(work);
      void work.finally(() => open.delete(work));
    }
  } catch (error) {
    if (!io.signal.aborted) throw error;
    io.acceptSignal?.(); // how clients end their servers
  }
  await Promise.allSettled(open);
}

const NO_JSON = failureOf(null, RPC_CODES.parse, 'not valid JSON');

function parse(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
