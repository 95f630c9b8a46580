import { Buffer } from 'node:buffer';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { RuvLLMError } from '../../core/errors.ts';
import type { Bundle } from '../../learning/federation/bundle.ts';
import type { FederationStatus, PullReport } from '../../learning/federation/federation.ts';
import { writeWhole } from '../../platform/node/files/file-sink.ts';
import { readJsonFile } from '../../platform/node/files/json-file.ts';
import { learningOperation, learningPath } from '../../runtime/learning/operations/index.ts';
import type { Actions } from '../actions.ts';
import type { CommandContext } from '../command.ts';
import { collectOptions, defineFlags } from '../flags.ts';
import { formatBytes } from '../format.ts';
import { clientAction } from '../memory/action.ts';
import type { MemoryClient } from '../memory/client-types.ts';
import { dateOf } from '../memory/show.ts';
import { escapeLine } from '../safe-text.ts';
import { askServer, type NamedServer, readServer } from '../servers/ask-server.ts';
import { usageError } from '../usage-error.ts';
import { PART_STATES, runToEnd } from './change-actions.ts';
import { LEARN_CLIENT, learnAction } from './client.ts';

/** Larger than any valid bundle with its escapes. */
const MAX_FILE_BYTES = 16 << 20;
const PEER_KEY_ROW = {
  '--peer-api-key <key>': 'API key of the other server, with scope admin (env RUVLLM_PEER_API_KEY)',
};
const SHARE_FLAGS = defineFlags({
  '--texts texts': 'share the texts of the requests, too',
  '--no-terms terms': 'share no hashed words, which can be guessed by trying words',
  '--expires-days <days> expiresDays': 'days until receivers stop using the bundle, 1 to 90; default 30',
});
const PUSH_FLAGS = [...SHARE_FLAGS, ...defineFlags(PEER_KEY_ROW)];

const isUrl = (text: string): boolean => /^https?:\/\//.test(text);

/** The server of a peer, with the key for it: never with the key of the own server. */
function peerServer({ io, values }: CommandContext, url: string): NamedServer {
  const { base } = readServer({ io, values: { '--url': url } });
  return { io, base, key: (values['--peer-api-key'] as string | undefined) ?? (io.environment['RUVLLM_PEER_API_KEY'] || null) }; // prettier-ignore
}

const askPeer = (context: CommandContext, peer: string, operation: string, body: object): Promise<unknown> => {
  const server = peerServer(context, peer);
  return askServer(server, { method: 'POST', url: new URL(`${server.base}${learningPath(learningOperation(operation))}`), body }); // prettier-ignore
};

/** Bundles of a file, of the .json files of a folder, or of a server. */
async function* readBundles(context: CommandContext, source: string): AsyncGenerator<[name: string, bundle: unknown]> {
  if (isUrl(source)) {
    const { bundle } = (await askPeer(context, source, 'federate.push', {})) as { bundle?: unknown };
    yield [source, bundle];
    return;
  }
  const isFolder = statSync(source, { throwIfNoEntry: false })?.isDirectory() === true;
  const names = isFolder ? readdirSync(source).filter((name) => name.endsWith('.json')).sort() : []; // prettier-ignore
  if (isFolder && names.length === 0) throw new RuvLLMError('not_found', `${source} has no .json files`);
  for (const path of isFolder ? names.map((name) => join(source, name)) : [source]) {
    yield [path, readJsonFile(path, MAX_FILE_BYTES)];
  }
}

/** Trains the router with the new bundles; the gate decides whether it serves. */
async function train(client: MemoryClient, context: CommandContext): Promise<object> {
  const run = await runToEnd(client, context, { of: 'routing' });
  const { parts = [] } = run as { parts?: typeof run.parts };
  for (const { part, state, version, reason } of parts) {
    context.output.lines(escapeLine(`${part}: ${PART_STATES[state](version)}; ${reason}`));
  }
  return { state: run.state, parts };
}

function showPeers({ peers }: FederationStatus, { output }: CommandContext): void {
  if (peers.length === 0) return output.note('no peers; add one with: ruvllm federate peers add KEY --name NAME');
  const rows = peers.map((peer) => [
    escapeLine(peer.name),
    peer.key,
    peer.sequence === 0 ? 'no bundle yet' : peer.isExpired ? 'expired' : `until ${dateOf(peer.expiresMs)}`,
    String(peer.numExamples),
    String(peer.numRefused),
    escapeLine(peer.lastRefusal ?? ''),
  ]);
  output.table(['PEER', 'KEY', 'BUNDLE', 'RATINGS', 'REFUSED', 'LAST REFUSAL'], rows);
}

/** Actions of `ruvllm federate`. */
export const FEDERATE_ACTIONS: Actions = {
  peers: clientAction(LEARN_CLIENT, {
    args: '[list|add|remove] [key]',
    description: 'list the peers of the tenant, trust a public key, or remove a peer with all it sent',
    flags: defineFlags({ '--name <name>': 'name of the added peer' }),
    canCreate: true,
    async run(client, context, [action = 'list', key]) {
      const { output, values } = context;
      const name = values['--name'] as string | undefined;
      if (name !== undefined && action !== 'add') throw usageError('--name belongs to federate peers add', '--name');
      if (action === 'list') {
        if (key !== undefined) throw usageError(`unexpected argument ${JSON.stringify(key)} of federate peers list`);
        const status = await client.call<FederationStatus>('federate.status', {});
        output.document({ peers: status.peers });
        return showPeers(status, context);
      }
      if (action !== 'add' && action !== 'remove') throw usageError(`unknown action ${JSON.stringify(action)}; federate peers has list, add, remove`); // prettier-ignore
      if (key === undefined) throw usageError(`federate peers ${action} requires a key${action === 'add' ? '' : ' or a name'}`); // prettier-ignore
      if (action === 'add') {
        if (name === undefined) throw usageError('federate peers add requires --name', '--name');
        output.document(await client.call<object>('federate.add-peer', { key, name }));
        return output.note('added: its bundles are accepted from now on');
      }
      const removed = await client.call<{ withdrawn: readonly { reason: string }[] }>('federate.remove-peer', { peer: key }); // prettier-ignore
      output.document(removed);
      output.note('removed, with everything it sent');
      for (const { reason } of removed.withdrawn) output.note(`routers trained on it are withdrawn: ${reason}`);
    },
  }),
  push: clientAction(LEARN_CLIENT, {
    args: '<file|url>',
    description: "write a signed bundle of the tenant's own ratings to a file, or send it to the server of a peer",
    flags: PUSH_FLAGS,
    async run(client, context, [destination]) {
      const { output, values } = context;
      const { bundle } = await client.call<{ bundle: Bundle }>('federate.push', collectOptions(SHARE_FLAGS, values));
      const { key, sequence, expiresMs, contents } = bundle;
      const { routes } = JSON.parse(contents) as { routes: { examples: readonly unknown[] } };
      const summary = { key, sequence, expiresMs, numExamples: routes.examples.length, destination };
      if (isUrl(destination!)) {
        const received = (await askPeer(context, destination!, 'federate.pull', { bundle })) as object;
        output.document({ ...summary, received });
        return output.lines(
          `sent bundle ${sequence} with ${summary.numExamples} ratings to ${escapeLine(destination!)}`,
        );
      }
      const text = `${JSON.stringify(bundle)}\n`;
      const sizeBytes = writeWhole(destination!, (sink) => sink.write(Buffer.from(text)));
      output.document({ ...summary, sizeBytes });
      output.lines(`wrote ${escapeLine(destination!)}: bundle ${sequence}, ${summary.numExamples} ratings, ${formatBytes(sizeBytes)}`); // prettier-ignore
    },
  }),
  pull: clientAction(LEARN_CLIENT, {
    args: '<file|folder|url...>',
    description: 'check and store bundles of peers; with --url of a server with routes, train its router on them',
    flags: defineFlags({ '--no-train': 'only store the bundles; the next learning loop uses them', ...PEER_KEY_ROW }),
    canCreate: true,
    async run(client, context, sources) {
      const { output, values } = context;
      const accepted: PullReport[] = [];
      const refused: { source: string; reason: string }[] = [];
      let isTrainable = false;
      let firstError: unknown;
      for (const source of sources) {
        for await (const [name, bundle] of readBundles(context, source)) {
          try {
            const report = await client.call<PullReport & { isTrainable: boolean }>('federate.pull', { bundle });
            accepted.push(report);
            isTrainable = report.isTrainable;
            output.lines(`${escapeLine(report.peer)}: bundle ${report.sequence} with ${report.numExamples} ratings, valid until ${dateOf(report.expiresMs)}`); // prettier-ignore
          } catch (error) {
            // One refused bundle must not stop those of other peers.
            firstError ??= error;
            refused.push({ source: name, reason: (error as Error).message });
            if (sources.length > 1 || name !== source) output.note(`${escapeLine(name)}: ${escapeLine((error as Error).message)}`); // prettier-ignore
          }
        }
      }
      const isTraining = accepted.length > 0 && isTrainable && values['--no-train'] !== false;
      const training = isTraining ? await train(client, context) : null;
      if (firstError !== undefined) throw firstError;
      output.document({ accepted, refused, training });
      if (accepted.length > 0 && !isTrainable) output.note('stored; a server with --route-config trains its router on them'); // prettier-ignore
    },
  }),
  status: learnAction<FederationStatus>('federate.status', {
    description: 'show the public key of this node, its peers, their bundles and what was sent',
    canCreate: true,
    show(status, context) {
      const { output } = context;
      const { sent } = status;
      output.details([
        ['public key', status.key],
        ['sent', sent.numBundles === 0 ? 'nothing' : `${sent.numBundles} bundles, the last with ${sent.numExamples} ratings on ${dateOf(sent.pushedMs)}`], // prettier-ignore
      ]);
      showPeers(status, context);
    },
  }),
};
