import { refusal } from '../errors.ts';
import { modelFileResponse } from '../model-files.ts';
import type { RouteCodes } from '../route.ts';
import { readQuery } from '../wire/query-fields.ts';

/** `GET /v1/model-files/ID`: a page runs the model with it. */
export const routes = {
  'GET /v1/model-files/:id{.+}': {
    summary: 'The GGUF file of a served model, by id or alias, with its SHA-256; supports ranges.',
    query: {},
    async handle({ request, params, services, caller }) {
      readQuery(request, {});
      const { modelFiles, models, guard } = services;
      if (modelFiles === null) throw refusal(501, 'not_implemented', 'this server does not offer model files');
      const id = params['id']!;
      const status = models.find(id);
      // Also found by the name of an adapter, whose file is another one.
      const isNamed = status !== null && [status.id, ...status.aliases].includes(id);
      if (!isNamed || status.path === undefined) {
        const message = `no file of the model ${JSON.stringify(id.slice(0, 200))} is served here`;
        throw refusal(404, 'model_not_found', message, { param: 'model' });
      }
      const { path } = status;
      const info = await modelFiles.describe(path);
      // A download takes minutes: a revoked key does not get the rest.
      return modelFileResponse(info, request.headers, (range) =>
        modelFiles.read(path, range, () => guard.checkCaller(caller)),
      );
    },
  },
} satisfies RouteCodes;
