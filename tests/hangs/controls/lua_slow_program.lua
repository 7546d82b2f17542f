-- Reads the output of a program that writes late.
print(io.popen("sleep " .. arg[1] .. "; echo done"):read("l"))
