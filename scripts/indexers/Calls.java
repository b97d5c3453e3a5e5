import com.sun.source.tree.*;
import com.sun.source.util.*;
import com.sun.tools.javac.code.Symbol;
import com.sun.tools.javac.tree.JCTree;
import com.sun.tools.javac.tree.TreeInfo;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.List;
import java.util.regex.Pattern;
import javax.tools.*;

/**
 * What the compiler of Java says of each call: {@code scripts/measure-calls java} runs it and packs its lines with scip.py.
 *
 * <p>Arguments: the folder of the sources, and where the classes are that they need. It prints a line for each name: file, line and
 * columns from 0, whether it is defined there, and what it stands for.
 */
final class Calls extends TreePathScanner<Void, Void> {
    private final PrintStream out;
    private final Path root;
    private CompilationUnitTree unit;
    private String text;

    private Calls(PrintStream out, Path root) {
        this.out = out;
        this.root = root;
    }

    /** Prints the first place of a name at or behind a place of the file. */
    private void print(int from, String name, String kind, Symbol symbol) {
        if (symbol == null || from < 0) return;
        var found = Pattern.compile("\\b" + Pattern.quote(name) + "\\b").matcher(text);
        if (!found.find(from)) return;
        int line = text.lastIndexOf('\n', found.start()) + 1;
        long number = unit.getLineMap().getLineNumber(found.start()) - 1;
        var file = root.relativize(Path.of(unit.getSourceFile().toUri()));
        var of = symbol instanceof Symbol.ClassSymbol it ? it.flatname : symbol.owner + "." + symbol.name + symbol.type;
        out.printf("%s\t%d\t%d\t%d\t%s\t%s%n", file, number, found.start() - line, found.end() - line, kind, of);
    }

    @Override
    public Void visitCompilationUnit(CompilationUnitTree tree, Void none) {
        unit = tree;
        try {
            text = tree.getSourceFile().getCharContent(true).toString();
        } catch (IOException err) {
            return null;
        }
        return super.visitCompilationUnit(tree, none);
    }

    @Override
    public Void visitClass(ClassTree tree, Void none) {
        var it = (JCTree.JCClassDecl) tree;
        if (!it.name.isEmpty()) {
            // The name stands behind the modifiers, in which there may be annotations.
            int behind = TreeInfo.endPos(it.mods);
            print(Math.max(behind, it.pos), it.name.toString(), "defines", it.sym);
        }
        return super.visitClass(tree, none);
    }

    @Override
    public Void visitMethod(MethodTree tree, Void none) {
        var it = (JCTree.JCMethodDecl) tree;
        // A constructor goes by its class.
        if (it.sym != null && !it.sym.isConstructor()) print(it.pos, it.name.toString(), "defines", it.sym);
        return super.visitMethod(tree, none);
    }

    @Override
    public Void visitMethodInvocation(MethodInvocationTree tree, Void none) {
        var select = ((JCTree.JCMethodInvocation) tree).meth;
        if (select instanceof JCTree.JCIdent it) {
            if (!it.name.contentEquals("this") && !it.name.contentEquals("super")) print(it.pos, it.name.toString(), "uses", it.sym);
        } else if (select instanceof JCTree.JCFieldAccess it) {
            print(it.pos, it.name.toString(), "uses", it.sym);
        }
        return super.visitMethodInvocation(tree, none);
    }

    @Override
    public Void visitNewClass(NewClassTree tree, Void none) {
        var made = ((JCTree.JCNewClass) tree).clazz;
        if (made instanceof JCTree.JCTypeApply it) made = it.clazz;
        if (made instanceof JCTree.JCIdent it) print(it.pos, it.name.toString(), "uses", it.sym);
        if (made instanceof JCTree.JCFieldAccess it) print(it.pos, it.name.toString(), "uses", it.sym);
        return super.visitNewClass(tree, none);
    }

    public static void main(String[] arguments) throws IOException {
        var root = Path.of(arguments[0]).toRealPath();
        var compiler = ToolProvider.getSystemJavaCompiler();
        var files = compiler.getStandardFileManager(null, null, StandardCharsets.UTF_8);
        List<Path> sources;
        try (var all = Files.walk(root)) {
            sources = all.filter(it -> it.toString().endsWith(".java") && !it.endsWith("module-info.java")).toList();
        }
        var options = List.of("-proc:none", "-classpath", arguments.length > 1 ? arguments[1] : "", "-Xmaxerrs", "1");
        // What is not understood is not said.
        DiagnosticListener<JavaFileObject> silent = it -> {};
        var task = (JavacTask) compiler.getTask(null, files, silent, options, null, files.getJavaFileObjectsFromPaths(sources));
        var parsed = task.parse();
        task.analyze();
        var out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (var unit : parsed) new Calls(out, root).scan(unit, null);
        out.flush();
    }
}
