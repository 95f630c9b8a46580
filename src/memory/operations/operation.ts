import { z } from 'zod';
import { RuvLLMError } from '../../core/errors.ts';
import type { JsonSchema } from '../../core/kinds.ts';
import type { Memory } from '../memory.ts';
import { checkTenantIsCallers } from '../state-tenant.ts';
import { parseWith } from '../schemas/primitives.ts';
import { MEMORY_SCOPES, type OperationScope } from './operation-names.ts';

/** An operation on tenants' data, the same on the command line and over HTTP. */
export interface Operation<Target> {
  readonly name: string;
  readonly summary: string;
  readonly scope: OperationScope;
  readonly input: z.ZodType;
  /** Checks `input` first; returns plain JSON of this tenant only. */
  run(target: Target, tenant: string, input: unknown): Promise<object>;
}

export type MemoryOperation = Operation<Memory>;

/** JSON Schema of an operation's input. */
export function inputSchemaOf({ input }: { readonly input: z.ZodType }): JsonSchema {
  const { $schema: _dialect, ...schema } = z.toJSONSchema(input, { io: 'input', unrepresentable: 'any' });
  return schema;
}

export interface OperationDefinition<Target, S extends z.ZodType, Name> {
  readonly name: Name;
  readonly summary: string;
  readonly input: S;
  run(target: Target, tenant: string, input: z.output<S>): Promise<object>;
}

/** Makes operations on one kind of target that check their input. */
export function operationsOn<Target>() {
  return <Name extends string>(scopes: Readonly<Record<Name, OperationScope>>) =>
    <S extends z.ZodType>(definition: OperationDefinition<Target, S, Name>): Operation<Target> => {
      const { name, input } = definition;
      return {
        ...definition,
        scope: scopes[name],
        async run(target, tenant, given) {
          checkTenantIsCallers(tenant);
          return definition.run(target, tenant, parseWith<z.output<S>>(input as never, given, name));
        },
      };
    };
}

export const defineOperation = operationsOn<Memory>()(MEMORY_SCOPES);

export function refuseInput(message: string, option: string): RuvLLMError {
  return new RuvLLMError('invalid_option', message, { data: { option } });
}

export function notFound(message: string): RuvLLMError {
  return new RuvLLMError('not_found', message);
}
