import { describe, expect, test } from 'vitest';
import { readRouteConfig } from './route-config.ts';
import { CONFIG, configOf, FAR_KEY } from './routing.contract.ts';

describe('[RO8] the configuration', () => {
  test('is read with its defaults, and shows no key', () => {
    const config = configOf();
    expect(config).toMatchObject({ alias: 'auto', safeDefault: 0, minConfidence: 0.7, exploration: null });
    expect(config.priced[2]).toEqual({ id: 'far', kind: 'remote', pricePerToken: 4e-6, latencyMs: 1000 });
    const far = config.candidates[2]!;
    expect(far.kind === 'remote' && config.keyOf(far)).toBe(FAR_KEY);
    expect(JSON.stringify(config)).not.toContain(FAR_KEY);
  });

  const far = CONFIG.candidates[2]!;
  test.each([
    ['an unknown key', { ...CONFIG, extra: 1 }, 'extra'],
    ['an unknown key of a candidate', { ...CONFIG, candidates: [{ ...far, apiKey: 'sk' }], default: 'far' }, 'apiKey'],
    ['no candidates', { ...CONFIG, candidates: [] }, 'candidates'],
    ['one twice', { ...CONFIG, candidates: [CONFIG.candidates[0], CONFIG.candidates[0]] }, 'twice'],
    ['a default that is none', { ...CONFIG, default: 'other' }, 'other'],
    ['an alias that is one', { ...CONFIG, alias: 'small' }, 'small'],
    ['another protocol', { ...CONFIG, candidates: [{ ...far, url: 'file:///etc/passwd' }], default: 'far' }, 'http'],
    ['a password in a url', { ...CONFIG, candidates: [{ ...far, url: 'http://u:p@host/v1' }], default: 'far' }, 'password'], // prettier-ignore
    ['a key that is not set', { ...CONFIG, candidates: [{ ...far, apiKeyEnv: 'NOT_SET' }], default: 'far' }, 'NOT_SET'],
    ['a price below 0', { ...CONFIG, candidates: [{ ...far, pricePerMTokens: { input: -1, output: 0 } }], default: 'far' }, 'pricePerMTokens'], // prettier-ignore
    ['no object', null, 'route configuration'],
  ])('refuses %s', (_name, given, says) => {
    let message = '';
    try {
      readRouteConfig(given, { FAR_KEY });
    } catch (error) {
      message = (error as Error).message;
    }
    expect(message).toContain(says);
    expect(message).not.toContain(FAR_KEY);
  });
});
