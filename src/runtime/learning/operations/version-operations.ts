import { z } from 'zod';
import { describeAdapterFile } from '../../../adapters/index.ts';
import { RuvLLMError } from '../../../core/errors.ts';
import { createMemorySink, writeGguf } from '../../../gguf/index.ts';
import { adapterLine } from '../../../learning/sona/learned-adapter.ts';
import { createFloatBlobs } from '../../../learning/versions/blobs.ts';
import type { LearnedVersion } from '../../../learning/versions/version-log.ts';
import { toBase64 } from '../../../memory/common/float-packing.ts';
import { notFound, refuseInput } from '../../../memory/operations/operation.ts';
import { name } from '../../../memory/schemas/primitives.ts';
import type { LearningControl } from './control.ts';
import { defineLearning, learned, type LearningOperation, model, plainVersion, versionNumber } from './define.ts';
import { kindOf, lineOf } from './learned-lines.ts';
import type { Learned } from './run-parts.ts';

/** Listed requests of a difference; the rest is only counted. */
const MAX_NAMED = 100;
/** Sent as base64 in JSON, so the size is limited. */
const MAX_FILE_BYTES = 1 << 26;

const history = defineLearning({
  name: 'learn.history',
  summary: 'Learned versions of a model, or of `of`, the newest first; refused ones with the reason.',
  input: z.strictObject({ model, of: learned, limit: z.int().min(1).max(1000).default(50) }),
  async run(control, tenant, { model: named, of, limit }) {
    const { name: id, line } = lineOf(control, of, named);
    const { versions } = control.learning.sona;
    const active = await versions.active(tenant, line);
    const found = await versions.history(tenant, line, limit);
    return { model: id, serves: active?.version ?? 0, versions: found.map(plainVersion) };
  },
});

/** The distance of the weights; null if they are deleted or have another shape. */
async function compareWeights(
  { memory }: LearningControl,
  of: Learned,
  tenant: string,
  from: LearnedVersion,
  to: LearnedVersion,
) {
  const blobs = createFloatBlobs(memory.store, memory.services);
  if (!from.isAccepted || !to.isAccepted) return null;
  const read = (version: LearnedVersion) =>
    kindOf(of)
      .weightsOf(blobs, tenant, version)
      .catch((error: unknown) => {
        if (error instanceof RuvLLMError && error.code === 'not_found') return null;
        throw error;
      });
  const [before, after] = [await read(from), await read(to)];
  if (before === null || after === null || before.length !== after.length) return null;
  let [fromSquares, toSquares, moved] = [0, 0, 0];
  for (let i = 0; i < after.length; i++) {
    const [a, b] = [before[i]!, after[i]!];
    fromSquares += a * a;
    toSquares += b * b;
    moved += (b - a) ** 2;
  }
  return {
    numParameters: after.length,
    normFrom: Math.sqrt(fromSquares),
    normTo: Math.sqrt(toSquares),
    normOfChange: Math.sqrt(moved),
  };
}

function compareRequests(from: LearnedVersion, to: LearnedVersion) {
  const [before, after] = [new Set(from.learnedFrom), new Set(to.learnedFrom)];
  const added = to.learnedFrom.filter((id) => !before.has(id));
  const removed = from.learnedFrom.filter((id) => !after.has(id));
  return {
    numAdded: added.length,
    numRemoved: removed.length,
    added: added.slice(0, MAX_NAMED),
    removed: removed.slice(0, MAX_NAMED),
  };
}

const diff = defineLearning({
  name: 'learn.diff',
  summary: 'Compares two versions: metrics, requests they learned from, distance of the weights.',
  input: z.strictObject({ model, of: learned, from: versionNumber.min(1), to: versionNumber.min(1) }),
  async run(control, tenant, { model: named, of, from: fromVersion, to: toVersion }) {
    const { name: id, line } = lineOf(control, of, named);
    const { versions } = control.learning.sona;
    const from = await versions.get(tenant, line, fromVersion);
    const to = await versions.get(tenant, line, toVersion);
    const names = [...new Set([...Object.keys(from.metrics), ...Object.keys(to.metrics)])].sort();
    return {
      model: id,
      from: plainVersion(from),
      to: plainVersion(to),
      metrics: Object.fromEntries(
        names.map((key) => [key, { from: from.metrics[key] ?? null, to: to.metrics[key] ?? null }]),
      ),
      requests: compareRequests(from, to),
      weights: await compareWeights(control, of, tenant, from, to),
    };
  },
});

const rollback = defineLearning({
  name: 'learn.rollback',
  summary: 'Activates an older version, 0 for none; drops instant steps and recalls no corrections made since.',
  input: z.strictObject({ model, of: learned, toVersion: versionNumber }),
  async run(control, tenant, { model: named, of, toVersion }) {
    const { name: id } = lineOf(control, of, named);
    const { serves, ...report } = await kindOf(of).rollback(control, tenant, toVersion, named);
    return { model: id, serves: serves === null ? null : plainVersion(serves), ...report };
  },
});

const reset = defineLearning({
  name: 'learn.reset',
  summary: 'Restores the model of the file and recalls no corrections; stored requests and the history remain.',
  input: z.strictObject({ model }),
  run: (control, tenant, { model: named }) =>
    control.withModel(named, async (id) => ({ model: id, ...(await control.learning.rollback(tenant, id, 0)) })),
});

/** Fields of corrections by those of requests. A correction's session is not `sessionId`, which its turns have. */
const PAIR_FIELDS = { requestId: 'requestId', sessionId: 'conversation', userId: 'userId' } as const;

const forget = defineLearning({
  name: 'learn.forget',
  summary: 'Deletes requests by id, session or user, and everything learned from them; the audit log remains.',
  input: z.strictObject({ requestId: name.optional(), sessionId: name.optional(), userId: name.optional() }),
  async run({ learning }, tenant, given) {
    const [first, ...more] = Object.entries(given).filter(([, value]) => value !== undefined);
    if (first === undefined || more.length > 0) {
      throw refuseInput('requestId, sessionId or userId is required', 'requestId');
    }
    // A recent request may still be queued for the store, and would survive.
    await learning.settle();
    const [field, value] = first as [keyof typeof PAIR_FIELDS, string];
    const numCorrections = await learning.corrections.forget(tenant, [{ field: PAIR_FIELDS[field], is: '=', value }]);
    return { ...(await learning.sona.forget(tenant, [{ field, is: '=', value }])), numCorrections };
  },
});

const exportAdapter = defineLearning({
  name: 'learn.export',
  summary: 'Exports the active or another version as a LoRA in a GGUF file, base64-encoded.',
  input: z.strictObject({ model, version: versionNumber.min(1).optional(), type: z.enum(['F32', 'F16']).default('F32') }), // prettier-ignore
  run: (control, tenant, { model: named, version, type }) =>
    control.withModel(named, async (id) => {
      const { sona } = control.learning;
      const wanted = version ?? (await sona.versions.active(tenant, adapterLine(id)))?.version;
      if (wanted === undefined) throw notFound(`${id} has no active version; run a learning loop first`);
      const adapter = await sona.adapterOf(tenant, id, wanted);
      const sink = createMemorySink();
      writeGguf(describeAdapterFile(adapter, { name: `learned-${wanted}`, type }), sink);
      const bytes = sink.toBytes();
      if (bytes.length > MAX_FILE_BYTES) {
        throw new RuvLLMError('unsupported', `the file has ${bytes.length} bytes, the limit is ${MAX_FILE_BYTES}`);
      }
      const { contentHash, factors } = adapter;
      return { model: id, version: wanted, contentHash, numMatrices: factors.length, sizeBytes: bytes.length, gguf: toBase64(bytes) }; // prettier-ignore
    }),
});

export const versionOperations: readonly LearningOperation[] = [history, diff, rollback, reset, forget, exportAdapter];
