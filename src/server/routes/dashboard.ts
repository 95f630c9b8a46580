import { type DashboardFiles, serveDashboardFile } from '../dashboard-files.ts';
import { refusal } from '../errors.ts';
import { json, type Route } from '../route.ts';
import { openaiErrors } from '../wire/openai/error-body.ts';

/** The routes of the dashboard, for servers that have one. The page is public, and holds nothing: all data needs a key. */
export function dashboardRoutes(files: DashboardFiles): readonly Route[] {
  const get = (path: string, summary: string, handle: Route['handle']): Route => ({
    method: 'GET',
    path,
    scope: 'public',
    summary,
    body: null,
    errors: openaiErrors,
    handle,
  });
  const serveFile: Route['handle'] = ({ request }) => {
    const path = new URL(request.url).pathname;
    const file = files.get(path);
    if (file === undefined) throw refusal(404, 'unknown_url', `there is no ${JSON.stringify(path.slice(0, 200))} here`);
    return serveDashboardFile(file, { path, headers: request.headers });
  };
  return [
    get('/', 'The dashboard.', serveFile),
    get('/assets/:name', 'A file of the dashboard.', serveFile),
    // Asked before anything else: a page that tried without a key would fail, and be told so in the console.
    get('/dashboard.json', 'Whether the dashboard has to ask for a key.', ({ services }) =>
      json({ needs_key: !services.guard.isOpen }),
    ),
  ];
}
