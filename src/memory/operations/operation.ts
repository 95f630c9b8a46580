import type { z } from 'zod';
import { RuvLLMError } from '../../core/errors.ts';
import type { Memory } from '../memory.ts';
import { checkTenantIsCallers } from '../state-tenant.ts';
import { parseWith } from '../schemas/primitives.ts';

/** What somebody must be allowed to do: look at what is their own, change it, or run the memory. */
export type OperationScope = 'read' | 'write' | 'admin';

/** One thing an operator does with the memory, the same from the command line and over HTTP. */
export interface MemoryOperation {
  readonly name: string;
  readonly summary: string;
  readonly scope: OperationScope;
  readonly input: z.ZodType;
  /** Checks `input` first; what comes back is plain JSON, of this tenant and nobody else. */
  run(memory: Memory, tenant: string, input: unknown): Promise<object>;
}

interface OperationDefinition<S extends z.ZodType> {
  readonly name: string;
  readonly summary: string;
  readonly scope: OperationScope;
  readonly input: S;
  run(memory: Memory, tenant: string, input: z.output<S>): Promise<object>;
}

/** Binds an operation to the check of its input. */
export function defineOperation<S extends z.ZodType>(definition: OperationDefinition<S>): MemoryOperation {
  const { name, input } = definition;
  return {
    ...definition,
    async run(memory, tenant, given) {
      checkTenantIsCallers(tenant);
      return definition.run(memory, tenant, parseWith<z.output<S>>(input as never, given, name));
    },
  };
}

export function refuseInput(message: string, option: string): RuvLLMError {
  return new RuvLLMError('invalid_option', message, { data: { option } });
}

export function notFound(message: string): RuvLLMError {
  return new RuvLLMError('not_found', message);
}
