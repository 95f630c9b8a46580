import type { z } from 'zod';
import { RuvLLMError } from '../../core/errors.ts';
import type { Memory } from '../memory.ts';
import { checkTenantIsCallers } from '../state-tenant.ts';
import { parseWith } from '../schemas/primitives.ts';

/** What somebody must be allowed to do: look at what is their own, change it, or run the memory. */
export type OperationScope = 'read' | 'write' | 'admin';

/** One thing an operator does with something that keeps what tenants own, the same from the command line and over HTTP. */
export interface Operation<Target> {
  readonly name: string;
  readonly summary: string;
  readonly scope: OperationScope;
  readonly input: z.ZodType;
  /** Checks `input` first; what comes back is plain JSON, of this tenant and nobody else. */
  run(target: Target, tenant: string, input: unknown): Promise<object>;
}

/** One thing an operator does with the memory. */
export type MemoryOperation = Operation<Memory>;

export interface OperationDefinition<Target, S extends z.ZodType> {
  readonly name: string;
  readonly summary: string;
  readonly scope: OperationScope;
  readonly input: S;
  run(target: Target, tenant: string, input: z.output<S>): Promise<object>;
}

/** Binds operations on one kind of thing to the check of their input. */
export function operationsOn<Target>() {
  return <S extends z.ZodType>(definition: OperationDefinition<Target, S>): Operation<Target> => {
    const { name, input } = definition;
    return {
      ...definition,
      async run(target, tenant, given) {
        checkTenantIsCallers(tenant);
        return definition.run(target, tenant, parseWith<z.output<S>>(input as never, given, name));
      },
    };
  };
}

export const defineOperation = operationsOn<Memory>();

export function refuseInput(message: string, option: string): RuvLLMError {
  return new RuvLLMError('invalid_option', message, { data: { option } });
}

export function notFound(message: string): RuvLLMError {
  return new RuvLLMError('not_found', message);
}
