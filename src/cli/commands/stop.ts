import { RuvLLMError } from '../../core/errors.ts';
import type { CommandRunner } from '../command.ts';
import { API_KEY_FLAG, URL_FLAG } from '../config/common-flags.ts';
import type { Flag } from '../flags.ts';
import { askServer, readServer } from '../servers/ask-server.ts';
import { findServers } from '../servers/find-servers.ts';

export const flags: readonly Flag[] = [
  { ...URL_FLAG, description: `${URL_FLAG.description}; default: all servers of this machine` },
  API_KEY_FLAG,
];

/** Unloads a model in the running servers; the next request loads it again. */
export const run: CommandRunner = async (context) => {
  const { io, output, values } = context;
  const model = context.args[0]!.replace(/:latest$/, '');
  const stopped: string[] = [];
  const servers = findServers(context);
  for (const { url, isGuess } of servers) {
    const server = readServer({ io, values: { ...values, '--url': url } });
    try {
      const body = { model, force: true };
      await askServer(server, { method: 'POST', url: new URL(`${server.base}/admin/models/unload`), body });
      stopped.push(url);
    } catch (error) {
      const isOther =
        error instanceof RuvLLMError && (error.code === 'not_found' || (isGuess && error.code !== 'aborted'));
      if (!isOther) throw error;
    }
  }
  if (stopped.length === 0) {
    const urls = servers.map(({ url }) => url).join(', ');
    throw new RuvLLMError('not_found', `no running server serves ${model} (asked: ${urls}); see ruvllm ps`);
  }
  output.document({ model, servers: stopped });
  output.lines(`stopped ${model}`);
};
