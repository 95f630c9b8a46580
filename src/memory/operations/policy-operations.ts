import { z } from 'zod';
import { withoutUndefined } from '../common/store-access.ts';
import { DEFAULT_POLICIES } from '../policies/defaults.ts';
import { policyFromRecord, POLICY_TYPES, type PolicyEntry, type PolicyType } from '../schemas/policy.ts';
import { name } from '../schemas/primitives.ts';
import type { FieldCondition } from '../types.ts';
import { after, includeVectors, limit } from './inputs.ts';
import { defineOperation, notFound, type MemoryOperation } from './operation.ts';
import { plainPolicy } from './plain.ts';

const policyType = z.enum(POLICY_TYPES as [PolicyType, ...PolicyType[]]);
const which = { policyType, name: name.default('main') };

const list = defineOperation({
  name: 'policies.list',
  summary: 'The current policies, and the bundled defaults of types without one.',
  input: z.strictObject({
    policyType: policyType.optional(),
    limit: limit.default(50),
    after: after.optional(),
    includeVectors,
  }),
  async run(memory, tenant, { policyType: type, limit: size, after: from, includeVectors: hasFloats }) {
    const fields: FieldCondition[] = [{ field: 'isCurrent', is: '=', value: true }];
    if (type !== undefined) fields.push({ field: 'policyType', is: '=', value: type });
    const { records, next } = await memory.store.find(
      tenant,
      withoutUndefined({
        kinds: ['policy'] as const,
        filter: { fields },
        order: 'newest' as const,
        limit: size,
        after: from,
      }),
    );
    const held: (PolicyEntry | null)[] = [];
    for (const known of Object.keys(DEFAULT_POLICIES) as PolicyType[]) {
      if (from === undefined && (type ?? known) === known) held.push(await memory.policies.get(tenant, known));
    }
    return {
      policies: records.map((record) => plainPolicy(policyFromRecord(record), hasFloats)),
      defaults: held.filter((policy) => policy?.source === 'default').map((policy) => plainPolicy(policy!, hasFloats)),
      next,
    };
  },
});

const get = defineOperation({
  name: 'policies.get',
  summary: 'The current version of a policy.',
  input: z.strictObject({ ...which, includeVectors }),
  async run(memory, tenant, { policyType: type, name: policyName, includeVectors: hasFloats }) {
    const policy = await memory.policies.get(tenant, type, policyName);
    if (policy === null) throw notFound(`there is no ${type} policy ${JSON.stringify(policyName)}`);
    return { policy: plainPolicy(policy, hasFloats) };
  },
});

const history = defineOperation({
  name: 'policies.history',
  summary: 'The stored versions of a policy, the newest first.',
  input: z.strictObject({ ...which, includeVectors }),
  async run(memory, tenant, { policyType: type, name: policyName, includeVectors: hasFloats }) {
    const versions: readonly PolicyEntry[] = await memory.policies.history(tenant, type, policyName);
    return { versions: versions.map((policy) => plainPolicy(policy, hasFloats)) };
  },
});

const rollback = defineOperation({
  name: 'policies.rollback',
  summary: 'Restores an older version of a policy as a new version.',
  input: z.strictObject({ ...which, toVersion: z.int().min(1) }),
  async run(memory, tenant, { policyType: type, name: policyName, toVersion }) {
    return { policy: plainPolicy(await memory.policies.rollback(tenant, type, toVersion, policyName), false) };
  },
});

export const policyOperations: readonly MemoryOperation[] = [list, get, history, rollback];
