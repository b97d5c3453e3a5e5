// The official client in TypeScript calls tools one after another, and holds every answer against the schema of its tool.
//
// Told in one argument, as JSON, how to reach the server and what to call. Says in a line of JSON which tools there are and
// what came of each call.

import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const how = JSON.parse(process.argv[2]);
const require = createRequire(how.modules + '/');
const load = async name => import(pathToFileURL(require.resolve(name)).href);
const { Client } = await load('@modelcontextprotocol/client');
const { StdioClientTransport } = await load('@modelcontextprotocol/client/stdio');
const { default: Ajv } = await load('ajv/dist/2020.js').then(it => it.default);

const filled = (value, kept) => {
    if (Array.isArray(value)) return value.map(it => filled(it, kept));
    if (value && typeof value === 'object')
        return Object.fromEntries(Object.entries(value).map(([name, it]) => [name, filled(it, kept)]));
    return typeof value === 'string' && value.startsWith('$') ? kept[value.slice(1)] : value;
};
const at = (value, pointer) => pointer.split('/').slice(1).reduce((it, part) => it[part], value);

// The answer of a call, repeated with the cursor of the last answer where the step waits for a member to be true.
const called = async step => {
    let args = filled(step.arguments, kept);
    for (;;) {
        // The client itself holds the answer against the schema.
        const result = await client.callTool({ name: step.tool, arguments: args });
        if (result.isError || !step.until || result.structuredContent[step.until]) return result;
        args = { ...args, cursor: result.structuredContent.cursor, max_wait_s: 20 };
    }
};

const client = new Client({ name: 'every-tool', version: '1' }, { versionNegotiation: { mode: how.mode } });
await client.connect(new StdioClientTransport({ command: how.command, args: how.args, env: how.env, cwd: how.cwd }));
const { tools } = await client.listTools();
const ajv = new Ajv({ strict: true, allErrors: true });
const schemas = Object.fromEntries(tools.map(tool => [tool.name, tool.outputSchema]));
const kept = {};
const calls = [];
for (const step of how.steps) {
    const said = { tool: step.tool };
    calls.push(said);
    try {
        const result = await called(step);
        if (result.isError) {
            said.refused = result.content[0].text;
            continue;
        }
        said.answer = result.structuredContent;
        const holds = ajv.compile(schemas[step.tool]);
        if (!holds(said.answer)) said.wrong = ajv.errorsText(holds.errors).slice(0, 400);
        for (const [name, pointer] of Object.entries(step.keep ?? {})) kept[name] = at(said.answer, pointer);
    } catch (error) {
        said.wrong = String(error).slice(0, 400);
    }
}
console.log(JSON.stringify({ tools: schemas, calls }));
await client.close();
