import { RuvLLMError } from '../../core/errors.ts';
import { packFloats, unpackFloats } from '../../memory/common/float-packing.ts';
import { hashText, nameId } from '../../memory/common/ids.ts';
import type { MemoryServices } from '../../memory/common/services.ts';
import type { MemoryStore } from '../../memory/types.ts';
import type { TrainingExample } from '../lora-training/types.ts';
import type { TokenSample } from '../micro-lora/types.ts';
import type { LearningModel } from './types.ts';

/** Answers as the LM head of the model's file sees them: computed once by the serving engine, kept as long as the requests. */
export interface ExaminedAnswers {
  /** From the store, or from a pass of the model within `timeoutMs`, which throws `deadline_exceeded`. */
  of(
    tenant: string,
    model: LearningModel,
    example: TrainingExample,
    timeoutMs?: number,
  ): Promise<readonly TokenSample[]>;
  /** Null: not computed yet. */
  stored(tenant: string, model: LearningModel, example: TrainingExample): Promise<readonly TokenSample[] | null>;
  /** Deletes all of a tenant. */
  forget(tenant: string): Promise<void>;
}

const RECORD_NAME = 'examined';
const KEEP_MS = 30 * 86_400_000;
const PAGE = 500;

export function createExaminedAnswers(store: MemoryStore, services: MemoryServices): ExaminedAnswers {
  const { sha256 } = services;

  function idOf(tenant: string, { id, path }: LearningModel, { tokenIds, numPromptTokens }: TrainingExample): string {
    const tokens = hashText(sha256, JSON.stringify([Array.from(tokenIds), numPromptTokens]));
    return nameId(sha256, tenant, RECORD_NAME, id, path, tokens);
  }

  async function read(
    tenant: string,
    id: string,
    { hiddenDim }: LearningModel,
  ): Promise<readonly TokenSample[] | null> {
    const [record] = await store.get(tenant, [id]);
    return record == null ? null : unpackSamples(unpackFloats((record.body as { $f32: string }).$f32), hiddenDim);
  }

  return {
    async of(tenant, model, example, timeoutMs) {
      const id = idOf(tenant, model, example);
      const stored = await read(tenant, id, model);
      if (stored !== null) return stored;
      const options = { isPlain: true, ...(timeoutMs === undefined ? {} : { timeoutMs }) };
      const values = packSamples(await model.examine(tenant, example, options), model.hiddenDim);
      await store.put([
        {
          id,
          tenant,
          kind: 'state',
          expiresMs: Math.floor(services.now()) + KEEP_MS,
          fields: { name: RECORD_NAME },
          body: { $f32: packFloats(values) },
          vector: null,
          space: null,
        },
      ]);
      // As they are read later: learning again must give the same bits.
      return unpackSamples(values, model.hiddenDim);
    },
    stored: (tenant, model, example) => read(tenant, idOf(tenant, model, example), model),
    async forget(tenant) {
      const filter = { fields: [{ field: 'name', is: '=', value: RECORD_NAME }] } as const;
      for (;;) {
        const { records } = await store.find(tenant, { kinds: ['state'], filter, order: 'oldest', limit: PAGE });
        if (records.length === 0) return;
        await store.delete(
          tenant,
          records.map(({ id }) => id),
        );
      }
    },
  };
}

/** Values before the ids and logits of a sample: its label, that label's logit, log Σ exp (NaN: unknown) and the number of ids. */
const NUM_NUMBERS = 4;

/** Ids are below 2^20, so floats hold them exactly. */
function packSamples(samples: readonly TokenSample[], hiddenDim: number): Float32Array {
  const size = samples.reduce((sum, { ids }) => sum + hiddenDim + NUM_NUMBERS + 2 * ids.length, 0);
  const values = new Float32Array(size);
  let at = 0;
  for (const { hidden, label, labelLogit = null, logSumExp = null, ids, logits } of samples) {
    values.set(hidden, at);
    values.set([label, labelLogit ?? Number.NaN, logSumExp ?? Number.NaN, ids.length], at + hiddenDim);
    at += hiddenDim + NUM_NUMBERS;
    values.set(ids, at);
    values.set(logits, at + ids.length);
    at += 2 * ids.length;
  }
  return values;
}

function unpackSamples(values: Float32Array, hiddenDim: number): readonly TokenSample[] {
  const samples: TokenSample[] = [];
  for (let at = 0; at < values.length;) {
    const numbers = at + hiddenDim;
    const [label, labelLogit, logSumExp, count] = values.subarray(numbers, numbers + NUM_NUMBERS);
    const ids = numbers + NUM_NUMBERS;
    const end = ids + 2 * count!;
    if (!(end <= values.length)) throw new RuvLLMError('io', 'an examined answer is incomplete');
    samples.push({
      hidden: values.slice(at, numbers),
      label: label!,
      labelLogit: Number.isNaN(labelLogit!) ? null : labelLogit!,
      logSumExp: Number.isNaN(logSumExp!) ? null : logSumExp!,
      ids: Int32Array.from(values.subarray(ids, ids + count!)),
      logits: values.slice(ids + count!, end),
    });
    at = end;
  }
  return samples;
}
