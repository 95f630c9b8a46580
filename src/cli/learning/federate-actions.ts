import { Buffer } from 'node:buffer';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { RuvLLMError } from '../../core/errors.ts';
import type { Bundle } from '../../learning/federation/bundle.ts';
import type { BundleContents } from '../../learning/federation/contents.ts';
import type { FederationStatus, PrivacyStatus, PullReport } from '../../learning/federation/federation.ts';
import { writeWhole } from '../../platform/node/files/file-sink.ts';
import { readJsonFile } from '../../platform/node/files/json-file.ts';
import {
  learningOperation,
  learningPath,
  type LearningRun,
  type PartReport,
} from '../../runtime/learning/operations/index.ts';
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
  '--texts texts': 'share the texts of requests and patterns, too',
  '--no-terms terms': 'share no hashed words, which can be guessed by trying words',
  '--no-patterns patterns': 'share no patterns of rated requests',
  '--no-adapters adapters': 'share no trained adapters',
  '--expires-days <days> expiresDays': 'days until receivers stop using the bundle, 1 to 90; default 30',
});
const BUDGET_FLAGS = defineFlags({
  '--epsilon <x> epsilon':
    'bound over all bundles together; one conversation changes the probability of any bundles by at most a factor of e^epsilon',
  '--delta <x> delta': 'probability with which the bound may fail; default 1e-6',
  '--per-push <x> epsilonPerPush': 'bound of one bundle; default 1, or --epsilon if that is less',
});
const OFF_FLAG = defineFlags({ '--off': 'send bundles without noise again; spent budget stays spent' });
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

interface PulledReport extends PullReport {
  /** Whether a router can be trained on its ratings. */
  readonly isTrainable: boolean;
  /** Models that its adapters may belong to. */
  readonly mergeable: readonly string[];
}

/** Trains the router and merges adapters with the new bundles; the gates decide whether the results serve. */
async function train(client: MemoryClient, context: CommandContext, reports: readonly PulledReport[]) {
  const models = [...new Set(reports.flatMap(({ mergeable }) => mergeable))];
  const inputs: object[] = models.map((model) => ({ of: 'federation', model }));
  if (reports.some(({ isTrainable }) => isTrainable)) inputs.unshift({ of: 'routing' });
  const runs: { readonly state: string; readonly parts: readonly PartReport[] }[] = [];
  for (const input of inputs) {
    const { state, parts = [], model } = (await runToEnd(client, context, input)) as LearningRun & { parts?: LearningRun['parts'] }; // prettier-ignore
    for (const { part, state: end, version, reason } of parts) {
      const what = part === 'federation' ? `adapter of ${model}` : part;
      context.output.lines(escapeLine(`${what}: ${PART_STATES[end](version)}; ${reason}`));
    }
    runs.push({ state, parts });
  }
  if (runs.length === 0) return null;
  return { state: runs.find(({ state }) => state !== 'done')?.state ?? 'done', parts: runs.flatMap(({ parts }) => parts) }; // prettier-ignore
}

const contentsLine = ({
  numExamples,
  numPatterns,
  adapters,
}: Pick<PullReport, 'numExamples' | 'numPatterns'> & { readonly adapters: readonly unknown[] }): string =>
  // prettier-ignore
  `${numExamples} ratings, ${numPatterns} patterns and ${adapters.length} adapters`;

function showPeers({ peers }: FederationStatus, { output }: CommandContext): void {
  if (peers.length === 0) return output.note('no peers; add one with: ruvllm federate peers add KEY --name NAME');
  const rows = peers.map((peer) => [
    escapeLine(peer.name),
    peer.key,
    peer.sequence === 0 ? 'no bundle yet' : peer.isExpired ? 'expired' : `until ${dateOf(peer.expiresMs)}`,
    String(peer.numExamples),
    String(peer.numPatterns),
    escapeLine(peer.adapters.join(', ') || '–'),
    String(peer.numRefused),
    escapeLine(peer.lastRefusal ?? ''),
  ]);
  output.table(['PEER', 'KEY', 'BUNDLE', 'RATINGS', 'PATTERNS', 'ADAPTERS', 'REFUSED', 'LAST REFUSAL'], rows);
}

const budgetLine = ({
  epsilon,
  delta,
  epsilonPerPush,
  spent,
  left,
  spentBasic,
  numPushes,
  numPlain,
}: PrivacyStatus): string =>
  `epsilon ${spent.toFixed(3)} of ${epsilon} spent by ${numPushes} bundles, ${left.toFixed(3)} left (delta ${delta}, up to ${epsilonPerPush} per bundle; added up without composition ${spentBasic.toFixed(3)})${numPlain === 0 ? '' : `; ${numPlain} bundles were sent without noise, which the budget does not cover`}`;

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
      const removed = await client.call<{ withdrawn: readonly { model: string; reason: string }[] }>('federate.remove-peer', { peer: key }); // prettier-ignore
      output.document(removed);
      output.note('removed, with everything it sent');
      for (const { model, reason } of removed.withdrawn) output.note(escapeLine(`${model}: learned from it, withdrawn; ${reason}`)); // prettier-ignore
    },
  }),
  privacy: clientAction(LEARN_CLIENT, {
    description: 'limit how much of a conversation bundles reveal (differential privacy), or end the limit with --off',
    flags: [...BUDGET_FLAGS, ...OFF_FLAG],
    canCreate: true,
    async run(client, { output, values }) {
      const budget = collectOptions(BUDGET_FLAGS, values);
      const isOff = values['--off'] === true;
      if (isOff && Object.keys(budget).length > 0) throw usageError('--off has no budget', '--off');
      if (!isOff && values['--epsilon'] === undefined) throw usageError('federate privacy requires --epsilon or --off', '--epsilon'); // prettier-ignore
      const { privacy } = await client.call<{ privacy: PrivacyStatus | null }>('federate.set-privacy', { budget: isOff ? null : budget }); // prettier-ignore
      output.document({ privacy });
      output.lines(privacy === null ? 'bundles are not noised' : budgetLine(privacy));
    },
  }),
  push: clientAction(LEARN_CLIENT, {
    args: '<file|url>',
    description:
      "write a signed bundle of the tenant's own ratings, patterns and adapters to a file, or send it to the server of a peer",
    flags: PUSH_FLAGS,
    async run(client, context, [destination]) {
      const { output, values } = context;
      const { bundle, notShared, privacy } = await client.call<{ bundle: Bundle; notShared: readonly { model: string; reason: string }[]; privacy: PrivacyStatus | null }>('federate.push', collectOptions(SHARE_FLAGS, values)); // prettier-ignore
      const { key, sequence, expiresMs, contents } = bundle;
      const { routes, patterns, adapters = [] } = JSON.parse(contents) as BundleContents;
      const counts = {
        numExamples: routes?.examples.length ?? 0,
        numPatterns: patterns?.patterns.length ?? 0,
        adapters: adapters.map(({ model }) => model),
      };
      const summary = { key, sequence, expiresMs, ...counts, notShared, privacy, destination };
      if (privacy !== null)
        output.note(`ratings are noised, patterns and adapters are left out; ${budgetLine(privacy)}`);
      for (const { model, reason } of notShared)
        output.note(escapeLine(`the adapter of ${model} is not shared: ${reason}`));
      if (isUrl(destination!)) {
        const received = (await askPeer(context, destination!, 'federate.pull', { bundle })) as object;
        output.document({ ...summary, received });
        return output.lines(`sent bundle ${sequence} with ${contentsLine(counts)} to ${escapeLine(destination!)}`);
      }
      const text = `${JSON.stringify(bundle)}\n`;
      const sizeBytes = writeWhole(destination!, (sink) => sink.write(Buffer.from(text)));
      output.document({ ...summary, sizeBytes });
      output.lines(`wrote ${escapeLine(destination!)}: bundle ${sequence}, ${contentsLine(counts)}, ${formatBytes(sizeBytes)}`); // prettier-ignore
    },
  }),
  pull: clientAction(LEARN_CLIENT, {
    args: '<file|folder|url...>',
    description: 'check and store bundles of peers; with --url, train the router on them and merge adapters',
    flags: defineFlags({
      '--no-train':
        'only store the bundles: the next learning loop trains the router, ruvllm learn run --of federation merges adapters',
      ...PEER_KEY_ROW,
    }),
    canCreate: true,
    async run(client, context, sources) {
      const { output, values } = context;
      const accepted: PulledReport[] = [];
      const refused: { source: string; reason: string }[] = [];
      let firstError: unknown;
      for (const source of sources) {
        for await (const [name, bundle] of readBundles(context, source)) {
          try {
            const report = await client.call<PulledReport>('federate.pull', { bundle });
            accepted.push(report);
            output.lines(`${escapeLine(report.peer)}: bundle ${report.sequence} with ${contentsLine(report)}, valid until ${dateOf(report.expiresMs)}`); // prettier-ignore
            for (const { part, reason } of report.refused) output.note(escapeLine(`${part} refused: ${reason}`));
          } catch (error) {
            // One refused bundle must not stop those of other peers.
            firstError ??= error;
            refused.push({ source: name, reason: (error as Error).message });
            if (sources.length > 1 || name !== source) output.note(`${escapeLine(name)}: ${escapeLine((error as Error).message)}`); // prettier-ignore
          }
        }
      }
      const training = values['--no-train'] === false ? null : await train(client, context, accepted);
      if (firstError !== undefined) throw firstError;
      output.document({ accepted, refused, training });
      if (accepted.some(({ numExamples }) => numExamples > 0) && !accepted.some(({ isTrainable }) => isTrainable)) output.note('ratings are stored; a server with --route-config trains its router on them'); // prettier-ignore
    },
  }),
  status: learnAction<FederationStatus>('federate.status', {
    description: 'show the public key of this node, its peers, their bundles and what was sent',
    canCreate: true,
    show(status, context) {
      const { output } = context;
      const { sent, privacy } = status;
      output.details([
        ['public key', status.key],
        ['sent', sent.numBundles === 0 ? 'nothing' : `${sent.numBundles} bundles, the last with ${contentsLine(sent)} on ${dateOf(sent.pushedMs)}`], // prettier-ignore
        ['privacy', privacy === null ? 'bundles are not noised' : budgetLine(privacy)],
      ]);
      showPeers(status, context);
    },
  }),
};
