// What the compiler of C# has made of each call: `scripts/measure-calls csharp` runs it and packs its lines with scip.py.
//
// Arguments: the folder of the sources, and a program that was compiled from them with `mcs -debug`. It prints a line for each name:
// file, line and columns from 0, whether it is defined there, and what it stands for. What has no code, such as a method of an
// interface, is left out, and so are properties and operators.
using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Text.RegularExpressions;
using Mono.Cecil;
using Mono.Cecil.Cil;
using Mono.Cecil.Mdb;

static class Calls
{
    // A method's head stands at most so many lines above its first statement.
    const int HeadLinesMax = 20;

    static string root;
    static readonly Dictionary<string, string[]> Texts = new Dictionary<string, string[]>();

    static string[] TextOf(string path)
    {
        string[] lines;
        if (!Texts.TryGetValue(path, out lines))
            Texts[path] = lines = File.Exists(path) ? File.ReadAllLines(path) : new string[0];
        return lines;
    }

    // A constructor goes by its class.
    static string NameOf(MethodReference method)
    {
        var name = method.Name == ".ctor" ? method.DeclaringType.Name : method.Name;
        return name.Split('`')[0];
    }

    static void Print(string path, int line, string name, string before, string kind, string symbol)
    {
        var lines = TextOf(path);
        if (line < 0 || line >= lines.Length || !path.StartsWith(root)) return;
        var found = Regex.Match(lines[line], before + @"\b(" + Regex.Escape(name) + @")\b");
        if (!found.Success) return;
        var at = found.Groups[1];
        Console.WriteLine(string.Join("\t", path.Substring(root.Length), line, at.Index, at.Index + at.Length, kind, symbol));
    }

    static IEnumerable<TypeDefinition> TypesOf(IEnumerable<TypeDefinition> types)
    {
        return types.SelectMany(it => new[] { it }.Concat(TypesOf(it.NestedTypes)));
    }

    static void Define(MethodDefinition method, SequencePoint first)
    {
        var name = NameOf(method);
        var lines = TextOf(first.Document.Url);
        var head = new Regex(@"\b" + Regex.Escape(name) + @"\s*(<[^()]*>)?\s*\(");
        for (var line = Math.Min(first.StartLine, lines.Length) - 1; line >= Math.Max(0, first.StartLine - HeadLinesMax); line--)
        {
            if (!head.IsMatch(lines[line])) continue;
            Print(first.Document.Url, line, name, "", "defines", method.FullName);
            return;
        }
    }

    static void Main(string[] arguments)
    {
        root = Path.GetFullPath(arguments[0]).TrimEnd('/') + "/";
        var reading = new ReaderParameters { ReadSymbols = true, SymbolReaderProvider = new MdbReaderProvider() };
        var module = ModuleDefinition.ReadModule(arguments[1], reading);
        foreach (var method in TypesOf(module.Types).SelectMany(it => it.Methods).Where(it => it.HasBody))
        {
            SequencePoint place = null;
            foreach (var instruction in method.Body.Instructions)
            {
                var next = instruction.SequencePoint;
                if (next != null && next.StartLine < 0xfeefee)
                {
                    if (place == null) Define(method, next);
                    place = next;
                }
                var code = instruction.OpCode.Code;
                if (place == null || (code != Code.Call && code != Code.Callvirt && code != Code.Newobj)) continue;
                var called = (MethodReference)instruction.Operand;
                MethodDefinition meant;
                try { meant = called.Resolve(); } catch (AssemblyResolutionException) { meant = null; }
                if (meant != null && meant.Module == module && !meant.HasBody) continue;
                var before = code == Code.Newobj ? @"\bnew\s+(?:\w+\.)*" : "";
                // A statement may have several lines.
                for (var line = place.StartLine; line <= Math.Max(place.StartLine, Math.Min(place.EndLine, place.StartLine + 8)); line++)
                    Print(place.Document.Url, line - 1, NameOf(called), before, "uses", (meant ?? called).FullName);
            }
        }
    }
}
