import { RuvLLMError } from '../../core/errors.ts';
import type { Field } from './fields.ts';

/** A 400 that names the field and what it asks for. */
export function unsupported(path: string, feature: string): Error {
  return new RuvLLMError('unsupported', `'${path}': ${feature} is not supported by this version`, {
    data: { option: path },
  });
}

/** A field that is only known to be refused by name; null and false are as good as nothing. */
export function refusedField(feature: string): Field<never> {
  return {
    schema: { type: 'null', description: `${feature}: not supported` },
    read(value, path) {
      if (value === false) return null as never;
      throw unsupported(path, feature);
    },
  };
}
