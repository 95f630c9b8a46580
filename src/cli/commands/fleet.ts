import { createPrivateKey } from 'node:crypto';
import { systemClock } from '../../core/clock.ts';
import { RuvLLMError } from '../../core/errors.ts';
import { publishRelease, readReleases } from '../../gateway/releases/publish-release.ts';
import {
  ADAPTER_NAME,
  isSameAdapter,
  MAX_FILE_BYTES,
  type PublishedAdapter,
  type ReleaseRecord,
  signedBytes,
} from '../../gateway/releases/release-record.ts';
import type { ReleaseStore } from '../../gateway/releases/release-store.ts';
import { readMembers } from '../../gateway/shared/membership.ts';
import { isGgufAdapter } from '../../adapters/index.ts';
import { sha256Of } from '../../node/fleet/adapter-files.ts';
import { readSmallFile } from '../../platform/node/files/json-file.ts';
import { openModelFile } from '../../platform/node/files/open-model-file.ts';
import { publicKeyText, readPublicKey, signBytes } from '../../platform/node/signing/ed25519.ts';
import { openPublisherKey, readPublishers, writePublishers } from '../../platform/node/signing/publisher-keys.ts';
import type { FleetKeys } from '../../server/fleet/fleet-keys.ts';
import { actionCommand, type Action } from '../actions.ts';
import type { CommandContext } from '../command.ts';
import { defineFlags } from '../flags.ts';
import { formatBytes } from '../format.ts';
import { escapeLine } from '../safe-text.ts';
import { usageError } from '../usage-error.ts';
import { openFleetClient } from './fleet-client.ts';
import { FLEET_SECRET_FLAG } from './fleet-secret-flag.ts';
import { NATS_FLAG } from './nats-flag.ts';

const MAX_KEY_BYTES = 16 * 1024;
const DEFAULT_LIMIT_MS = 60_000;

const BUS_FLAGS = [NATS_FLAG, FLEET_SECRET_FLAG];
const CHANGE_FLAGS = [
  ...BUS_FLAGS,
  ...defineFlags({ '--timeout <seconds>': 'time for all nodes to download and check; default 60' }),
];
const PUBLISH_FLAGS = defineFlags({
  '--name <name>': 'name of the adapter: clients request MODEL:NAME',
  '--model <model>': 'base model, by the name that nodes serve it under',
  '--key <file>': 'private key of the publisher, Ed25519 in PEM; default: the key of this machine, see fleet key',
});

interface Fleet {
  readonly store: ReleaseStore;
  readonly keys: FleetKeys;
}

const shownName = ({ model, name }: Pick<PublishedAdapter, 'model' | 'name'>): string => `${model}:${name}`;

/** An action that needs the fleet. */
const fleetAction = (
  action: Omit<Action, 'run'> & { run(fleet: Fleet, context: CommandContext, args: readonly string[]): Promise<void> },
): Action => ({
  flags: BUS_FLAGS,
  ...action,
  async run(context, args) {
    const client = await openFleetClient(context);
    try {
      await action.run(client, context, args);
    } finally {
      await client.close();
    }
  },
});

async function change(
  { store, keys }: Fleet,
  { io, output, values }: CommandContext,
  changeOf: (record: ReleaseRecord) => readonly PublishedAdapter[],
): Promise<void> {
  const startMs = performance.now();
  const limitMs = (values['--timeout'] as number | undefined) ?? DEFAULT_LIMIT_MS;
  if (limitMs < 1000 || limitMs > 3_600_000) throw usageError('--timeout must be 1 to 3600 seconds', '--timeout');
  let before: ReleaseRecord | null = null;
  const { release, nodes, preparedMs, activeMs } = await publishRelease({
    store,
    keys,
    clock: systemClock,
    limitMs,
    signal: io.signal,
    change: (record) => changeOf((before = record)),
    onReport: (url, { state }) => output.note(escapeLine(`${url}: ${state}`)),
  });
  await dropFiles(store, before!, release.adapters);
  const late = nodes.filter(({ isActive }) => !isActive).map(({ url }) => url);
  output.document({
    release: release.number,
    adapters: release.adapters.map(describe),
    nodes,
    preparedMs,
    activeMs,
    totalMs: performance.now() - startMs,
  });
  output.lines(`release ${release.number}: active on ${nodes.length - late.length} of ${nodes.length} nodes`);
  if (late.length > 0)
    output.note(escapeLine(`not yet, and they get no requests for it until then: ${late.join(', ')}`));
}

/** Files that no release of the record needs any more. */
async function dropFiles(
  store: ReleaseStore,
  before: ReleaseRecord,
  adapters: readonly PublishedAdapter[],
): Promise<void> {
  const used = new Set([...before.committed.adapters, ...adapters].map(({ sha256 }) => sha256));
  const unused = (before.previous?.adapters ?? []).filter(({ sha256 }) => !used.has(sha256));
  for (const { sha256 } of unused) await store.deleteFile(sha256).catch(() => {});
}

/** The file of a publication that failed, unless a release or another publication has the same. */
async function dropUnused({ store, keys }: Fleet, sha256: string): Promise<void> {
  const { committed, previous, proposal } = (await readReleases(store, keys)).record;
  const used = [committed, previous, proposal].flatMap((release) => release?.adapters ?? []);
  if (!used.some((one) => one.sha256 === sha256)) await store.deleteFile(sha256);
}

const describe = ({ model, name, sha256, sizeBytes, key }: PublishedAdapter) => ({
  model,
  name,
  sha256,
  sizeBytes,
  key,
});

function readSigner(path: string | undefined): { publicKey(): string; sign(bytes: Uint8Array): string } {
  if (path === undefined) return openPublisherKey();
  const pem = Buffer.from(readSmallFile(path, MAX_KEY_BYTES));
  try {
    const key = createPrivateKey(pem);
    publicKeyText(key);
    return { publicKey: () => publicKeyText(key), sign: (bytes) => signBytes(key, bytes) };
  } catch (cause) {
    throw new RuvLLMError('invalid_option', '--key is not an Ed25519 private key in PEM', { cause, data: { option: '--key' } }); // prettier-ignore
  }
}

function readAdapterFile(path: string): Uint8Array {
  const gguf = openModelFile(path);
  try {
    if (isGgufAdapter(gguf)) return readSmallFile(path, MAX_FILE_BYTES);
  } finally {
    gguf.source.close();
  }
  throw new RuvLLMError('invalid_model_file', `${path} is not an adapter: general.type must be "adapter"`);
}

function required({ values }: CommandContext, flag: '--name' | '--model'): string {
  const value = values[flag] as string | undefined;
  if (value === undefined || value === '' || value.length > 200)
    throw usageError(`fleet publish requires ${flag}`, flag);
  if (flag === '--name' && !ADAPTER_NAME.test(value)) throw usageError('--name must be 1 to 64 letters, digits, "_", "-" or "."', flag); // prettier-ignore
  return value;
}

function splitAdapter(text: string): { model: string; name: string } {
  const at = text.lastIndexOf(':');
  if (at > 0) return { model: text.slice(0, at), name: text.slice(at + 1) };
  throw usageError(`expected MODEL:NAME, got ${JSON.stringify(text.slice(0, 200))}`);
}

/** Publishes adapters to all nodes of a fleet. */
export const { flags, help, run } = actionCommand(
  'fleet',
  {
    publish: fleetAction({
      args: '<file>',
      description: 'sign an adapter (GGUF) and make it active on all nodes, or on none',
      flags: [...CHANGE_FLAGS, ...PUBLISH_FLAGS],
      async run(fleet, context, [path]) {
        const [name, model] = [required(context, '--name'), required(context, '--model')];
        const bytes = readAdapterFile(path!);
        const signer = readSigner(context.values['--key'] as string | undefined);
        const contents = { model, name, sha256: sha256Of(bytes), sizeBytes: bytes.length };
        const key = signer.publicKey();
        const adapter = { ...contents, modelHash: '', key, signature: signer.sign(signedBytes(contents)) };
        if (!(await fleet.store.hasFile(adapter.sha256, adapter.sizeBytes))) await fleet.store.putFile(adapter.sha256, bytes); // prettier-ignore
        try {
          await change(fleet, context, ({ committed }) => [
            ...committed.adapters.filter((one) => shownName(one) !== shownName(adapter)),
            adapter,
          ]);
        } catch (error) {
          await dropUnused(fleet, adapter.sha256).catch(() => {});
          throw error;
        }
      },
    }),
    remove: fleetAction({
      args: '<model:name>',
      description: 'remove a published adapter from all nodes',
      flags: CHANGE_FLAGS,
      async run(fleet, context, [text]) {
        const wanted = shownName(splitAdapter(text!));
        await change(fleet, context, ({ committed: { adapters } }) => {
          if (adapters.some((one) => shownName(one) === wanted)) return adapters.filter((one) => shownName(one) !== wanted); // prettier-ignore
          throw new RuvLLMError('not_found', `no published adapter ${wanted}; published are ${adapters.map(shownName).join(', ') || 'none'}`); // prettier-ignore
        });
      },
    }),
    rollback: fleetAction({
      args: '',
      description: 'return to the adapters before the last publication, on all nodes or on none',
      flags: CHANGE_FLAGS,
      async run(fleet, context) {
        await change(fleet, context, ({ previous }) => {
          if (previous !== null) return previous.adapters;
          throw new RuvLLMError('not_found', 'there is no earlier release; nothing was published yet');
        });
      },
    }),
    status: fleetAction({
      args: '',
      description: 'show the published adapters, the nodes and a publication in progress',
      async run({ store, keys }, { output }) {
        const { record } = await readReleases(store, keys);
        const nodes = readMembers(keys, systemClock, await store.members());
        const { committed, previous, proposal } = record;
        const canRollBack =
          previous !== null &&
          (previous.adapters.length !== committed.adapters.length ||
            previous.adapters.some((one) => !committed.adapters.some((other) => isSameAdapter(one, other))));
        output.document({
          release: committed.number,
          adapters: committed.adapters.map(describe),
          previous: previous?.adapters.map(describe) ?? null,
          nodes,
          inProgress:
            proposal === null ? null : { adapters: proposal.adapters.map(describe), limitMs: proposal.limitMs },
        });
        output.lines(`release ${committed.number}, ${nodes.length} nodes`);
        const rows = committed.adapters.map((one) => [escapeLine(shownName(one)), one.sha256.slice(0, 12), formatBytes(one.sizeBytes), one.key]); // prettier-ignore
        if (rows.length > 0) output.table(['ADAPTER', 'SHA-256', 'SIZE', 'PUBLISHER'], rows);
        if (proposal !== null) output.note(`a publication is in progress, for at most ${proposal.limitMs / 1000} s`);
        if (canRollBack) output.note(escapeLine(`ruvllm fleet rollback returns to: ${previous.adapters.map(shownName).join(', ') || 'no adapters'}`)); // prettier-ignore
      },
    }),
    key: {
      args: '',
      description: 'show the public key that this machine publishes with',
      run({ output }) {
        const key = openPublisherKey().publicKey();
        output.document({ key });
        output.lines(key);
        output.note(`nodes load its adapters after: ruvllm fleet trust ${key}`);
      },
    },
    trust: {
      args: '<key>',
      description: 'let the nodes of this machine load adapters of a publisher (Ed25519, base64)',
      flags: defineFlags({ '--publisher <name>': 'whose key it is' }),
      run({ output, values }, [text]) {
        const key = readPublicKey(text!);
        const name = (values['--publisher'] as string | undefined) ?? 'unnamed';
        writePublishers([...readPublishers().filter((one) => one.key !== key), { key, name }]);
        output.document({ key, name });
        output.note('trusted; running nodes use it at once');
      },
    },
    untrust: {
      args: '<key>',
      description: 'load no more adapters of a publisher on this machine',
      run({ output }, [key]) {
        const publishers = readPublishers();
        const rest = publishers.filter((one) => one.key !== key);
        if (rest.length === publishers.length) throw new RuvLLMError('not_found', `no trusted publisher ${JSON.stringify(key)}`); // prettier-ignore
        writePublishers(rest);
        output.document({ removed: key });
        output.note('removed');
      },
    },
  },
  { notes: 'Nodes are ruvllm serve processes with the same --nats and --fleet-secret; see docs/scale.md.' },
);
